// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

func readCalls() []call {
	return []call{
		{"get", "pretty=true", 200, pretty},
		{"get", "pretty=false", 200, compact},

		{"list", "", 200, items("a", "b")},
		{"list", "pretty=true", 200, pretty},
		{"list", "labelSelector=team%3Db", 200, items("b")},
		{"list", "labelSelector=%3D%3D", 400, says("found '==', expected")},
		{"list", "fieldSelector=metadata.name%3Db", 200, items("b")},
		{"list", "fieldSelector=spec.x%3Db", 400, says("is not a known field selector")},
		{"list", "limit=1", 200, items("a")},
		{"list", "limit=1&continue=${continue}", 200, items("b")},
		{"list", "limit=-1", 200, items("a", "b")},
		{"list", "limit=1&continue=x", 400, says("continue key is not valid")},
		{"list", "resourceVersion=0", 200, items("a", "b")},
		{"list", "resourceVersion=${version}", 200, items("a", "b")},
		{"list", "resourceVersion=${version}&resourceVersionMatch=NotOlderThan", 200, items("a", "b")},
		{"list", "resourceVersion=${version}&resourceVersionMatch=Exact", 200, items("a", "b")},
		{"list", "resourceVersion=1&resourceVersionMatch=Exact", 200, items()},
		{"list", "resourceVersionMatch=Exact", 422, says("resourceVersionMatch is forbidden unless resourceVersion is provided")},
		{"list", "resourceVersion=${version}&resourceVersionMatch=Never", 422, says("supported values")},
		{"list", "sendInitialEvents=true", 422, says("sendInitialEvents is forbidden for list")},
		{"list", "timeoutSeconds=30", 200, items("a", "b")},
		{"list", "shardSelector=x", 200, items("a", "b")},
		{"list", "allowWatchBookmarks=true", 200, items("a", "b")},
		{"list", "watch=false", 200, items("a", "b")},
		{"list", "watch=true&timeoutSeconds=1", 200, events("ADDED", "ADDED")},
		{"list", "watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Db", 200, events("ADDED")},
		{"list", "watch=true&timeoutSeconds=1&labelSelector=team%3Da", 200, events("ADDED")},
		{"list", "watch=true&timeoutSeconds=1&resourceVersion=${version}", 200, events()},
		{
			"list", "watch=true&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
			200, events("ADDED", "ADDED", "BOOKMARK"),
		},
		{"list", "watch=true&timeoutSeconds=1&sendInitialEvents=true", 422, says("sendInitialEvents requires setting resourceVersionMatch")},
	}
}

func writeCalls() []call {
	return []call{
		{"create", "", 201, left("a", "b", "c")},
		{"create", "pretty=true", 201, pretty},
		{"create", "dryRun=All", 201, left("a", "b")},
		{"create", "dryRun=Some", 422, left("a", "b")},
		{"create", "fieldManager=me", 201, managedBy("c", "me")},
		{"create", "fieldValidation=Strict", 201, left("a", "b", "c")},
		{"create", "fieldValidation=Warn", 201, left("a", "b", "c")},
		{"create", "fieldValidation=Ignore", 201, left("a", "b", "c")},
		{"create", "fieldValidation=Never", 422, left("a", "b")},

		{"update", "", 200, message("changed")},
		{"update", "pretty=true", 200, pretty},
		{"update", "dryRun=All", 200, message("too many")},
		{"update", "dryRun=Some", 422, message("too many")},
		{"update", "fieldManager=me", 200, managedBy("a", "me")},
		{"update", "fieldValidation=Strict", 200, message("changed")},
		{"update", "fieldValidation=Never", 422, message("too many")},

		{"patch", "fieldManager=me&force=true", 200, team("z")},
		{"patch", "fieldManager=me", 409, team("a")},
		{"patch", "force=true", 422, says("is required for apply patch")},
		{"patch", "fieldManager=me&force=true&dryRun=All", 200, team("a")},
		{"patch", "fieldManager=me&force=true&dryRun=Some", 422, team("a")},
		{"patch", "fieldManager=me&force=true&pretty=true", 200, pretty},
		{"patch", "fieldManager=me&force=true&fieldValidation=Strict", 200, team("z")},
		{"patch", "fieldManager=me&force=true&fieldValidation=Never", 422, team("a")},
	}
}

func deleteCalls() []call {
	return []call{
		{"delete", "", 200, left("b")},
		{"delete", "pretty=true", 200, pretty},
		{"delete", "dryRun=All", 200, left("a", "b")},
		{"delete", "dryRun=Some", 422, left("a", "b")},
		{"delete", "gracePeriodSeconds=30", 200, left("b")},
		{"delete", "gracePeriodSeconds=0", 200, left("b")},
		{"delete", "propagationPolicy=Foreground", 200, left("b")},
		{"delete", "propagationPolicy=Background", 200, left("b")},
		{"delete", "propagationPolicy=Orphan", 200, left("b")},
		{"delete", "propagationPolicy=Never", 422, left("a", "b")},
		{"delete", "orphanDependents=true", 200, left("b")},
		{"delete", "orphanDependents=false", 200, left("b")},
		{"delete", "orphanDependents=true&propagationPolicy=Orphan", 422, left("a", "b")},
		{"delete", "ignoreStoreReadErrorWithClusterBreakingPotential=false", 200, left("b")},
		{"delete", "ignoreStoreReadErrorWithClusterBreakingPotential=true", 409, left("a", "b")},

		{"deletecollection", "", 200, left()},
		{"deletecollection", "pretty=true", 200, pretty},
		{"deletecollection", "dryRun=All", 200, left("a", "b")},
		{"deletecollection", "dryRun=Some", 422, left("a", "b")},
		{"deletecollection", "labelSelector=team%3Db", 200, left("a")},
		{"deletecollection", "fieldSelector=metadata.name%3Db", 200, left("a")},
		{"deletecollection", "fieldSelector=spec.x%3Db", 400, left("a", "b")},
		{"deletecollection", "limit=1", 200, left("b")},
		{"deletecollection", "limit=1&continue=${continue}", 200, left("a")},
		{"deletecollection", "gracePeriodSeconds=30", 200, left()},
		{"deletecollection", "propagationPolicy=Background", 200, left()},
		{"deletecollection", "propagationPolicy=Never", 422, left("a", "b")},
		{"deletecollection", "orphanDependents=false", 200, left()},
		{"deletecollection", "ignoreStoreReadErrorWithClusterBreakingPotential=false", 200, left()},
		// Without a body the query is read as DeleteOptions too, in which a
		// resourceVersion is what every object must be at.
		{"deletecollection", "resourceVersion=0", 409, left("a", "b")},
		{"deletecollection with a body", "resourceVersion=0", 200, left()},
		{"deletecollection with a body", "resourceVersion=${version}&resourceVersionMatch=NotOlderThan", 200, left()},
		{"deletecollection", "resourceVersionMatch=Exact", 422, left("a", "b")},
		{"deletecollection", "sendInitialEvents=true", 422, left("a", "b")},
		{"deletecollection", "timeoutSeconds=30", 200, left()},
		{"deletecollection", "shardSelector=x", 200, left()},
	}
}
