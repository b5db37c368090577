// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

// sort is the sort of an expression: what it evaluates to, if it does.
type sort byte

const (
	boolean sort = 'b'
	text    sort = 's'
	number  sort = 'i'
	double  sort = 'f'
	list    sort = 'l' // of strings
	numbers sort = 'n'
	dynamic sort = 'd'
)

// production is a template: {b} stands for an expression of the sort boolean, and
// so on; {S} and the other capitals for one of literals.
type productions struct{ leaves, branches []string }

// grammar has something from every library of Kubernetes 1.37, and of everything
// something that fails.
var grammar = map[sort]productions{
	boolean: {
		leaves: []string{
			"true", "object != null", "oldObject == null", "has({H})", "has({H})", "{d} == {S}", "{d} == {N}", "{d} > {N}", "{d} != null", "{d} == null", "{d} == true",
			"request.operation == 'CREATE'", "request.operation in ['UPDATE', 'DELETE']", "request.dryRun", "has(request.namespace)", "has(request.subResource)",
			"has(request.options)", "has(request.options.fieldManager)", "has(request.userInfo.extra)", "'devs' in request.userInfo.groups",
			"request.requestResource == request.resource", "request.kind.version == 'v1'", "request.resource.resource.startsWith('p')",
			"namespaceObject == null", "namespaceObject.metadata.labels['env'] == 'prod'", "has(namespaceObject.metadata.annotations)",
			"namespaceObject.status.phase == 'Active'", "namespaceObject.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')",
			"'scopes' in request.userInfo.extra && 'a' in request.userInfo.extra.scopes", "false",
		},
		branches: []string{
			"{b} && {b}", "{b} || {b}", "!{b}", "({b}) == ({b})", "{b} ? {b} : {b}", "{s} == {s}", "{s} != {s}", "{s} < {s}", "{i} == {i}", "{i} > {i}", "{i} <= {i}", "{f} < {i}",
			"{d} == {d}", "{d} in {d}", "{d} == {i}", "{d} >= {i}", "{s} in {d}", "{s} in {l}", "{d} != {s}",
			"{s}.startsWith({s})", "{s}.endsWith({S})", "{s}.contains({s})", "{s}.matches({R})", "{s}.matches(string({d}))",
			"{l}.all(e, e.contains({S}))", "{l}.exists(e, e == {s})", "{l}.exists_one(e, size(e) > {N})", "{d}.all(e, e != {S})", "{d}.exists(e, {b})", "{d}.exists_one(e, e == {d})",
			"object.spec.containers.all(c, c.image.startsWith({S}))", "object.spec.containers.exists(c, has(c.ports) && c.ports.all(p, p.containerPort < {i}))",
			"object.metadata.labels.all(k, object.metadata.labels[k] != {S})", "object.metadata.?labels[?'app'].orValue('none') == {s}",
			"{l}.all(i, v, i >= {N} || v != {S})", "{d}.exists(k, v, v == {S})", "{d}.existsOne(k, v, v == {d})",
			"{l}.isSorted()", "{n}.isSorted()", "sets.contains({l}, {l})", "sets.intersects({l}, {l})", "sets.equivalent({l}, {l})", "{d}.size() > {N}",
			"isIP({P})", "ip({P}).isLoopback()", "ip({P}) == ip({P})", "ip.isCanonical({P})", "ip({P}).family() == 4", "isCIDR({C})", "cidr({C}).containsIP({P})",
			"cidr({C}).containsCIDR(cidr({C}))", "cidr({C}).masked() == cidr({C})", "isURL({U})", "url({U}).getScheme() == {S}", "size(url({U}).getQuery()) > {N}",
			"isQuantity({Q})", "quantity({Q}).isGreaterThan(quantity({Q}))", "quantity({Q}).compareTo(quantity({Q})) == {N}", "quantity({Q}).isInteger()",
			"quantity({Q}).add({N}).sub(quantity({Q})).isLessThan(quantity({Q}))", "isSemver({V})", "isSemver({V}, true)", "semver({V}).isLessThan(semver({V}))", "semver({V}, true).compareTo(semver({V})) == 0",
			"format.dns1123Label().validate({s}).hasValue()", "!format.named('uuid').value().validate({s}).hasValue()", "format.named({S}).hasValue()", "format.qualifiedName().validate({s}) == optional.none()",
			"timestamp({T}) < timestamp({T})", "timestamp({T}) + duration({D}) > timestamp({T})", "duration({D}) > duration({D})", "timestamp({T}).getDayOfWeek('America/New_York') == {N}",
			"optional.of({s}).hasValue()", "optional.ofNonZeroValue({s}).orValue('x') == {S}", "object.spec.?nested.?a.?b.hasValue()", "object.spec.?name.optMap(n, n + 'x').orValue('') == {s}",
			"{d}.includes({S})", "{A}", "{A}", "type({d}) == string", "type({d}) == type({d})", "{d}.matches({R})", "dyn({s}) == {i}", "bool(string({b}))", "{b} && {A}",
			"object.spec.?items[?{N}].hasValue()", "{l} == {l}", "{n} == {n}", "[{s}, {s}] == {l}", "{'a': {s}}['a'] == {s}", "{'a': {s}, 'b': {s}}.exists(k, k == {S})",
			"b'abc' == bytes({s})", "'a' in {'a': {i}}", "{d}.transformMapEntry(k, v, {string(v): k}).size() > {N}", "uint({i}) > 1u", "{f} == {f}", "string({d}) == {s}",
		},
	},
	text: {
		leaves: []string{
			"{S}", "{S}", "request.name", "request.namespace", "request.operation", "request.subResource", "request.userInfo.username", "request.userInfo.uid", "request.kind.kind", "request.requestKind.version",
			"request.resource.version", "request.requestResource.group", "namespaceObject.metadata.name", "namespaceObject.metadata.labels.env", "string(object.spec.name)", "string({d})",
			"string(object.metadata.name)", "string(oldObject.spec.name)", "namespaceObject.metadata.annotations.note",
		},
		branches: []string{
			"{s} + {s}", "{b} ? {s} : {s}", "string({i})", "string({b})", "string({f})", "string({d})", "string(duration({D}))", "string(timestamp({T}))",
			"{s}.lowerAscii()", "{s}.upperAscii()", "{s}.trim()", "{s}.charAt({N})", "{s}.substring({N})", "{s}.substring({N}, {i})", "{s}.replace({S}, {S})", "{s}.replace('', {S}, {N})",
			"{l}.join({S})", "{l}.join()", "{l}[{N}]", "{s}.split({S})[0]", "'%s is %d'.format([{s}, {i}])", "'%.2f %x %e %s'.format([{f}, {i}, {f}, {l}])", "'%s'.format([{d}])", "'%d'.format([{d}])", "strings.quote({s})",
			"{s}.find({R})", "url({U}).getHost()", "url({U}).getHostname() + url({U}).getPort()", "url({U}).getEscapedPath()", "url({U}).getQuery()['q'][0]", "string(ip({P}))", "string(cidr({C}).ip())", "string(cidr({C}))",
			"object.spec.?name.orValue('none') == 'none' ? {s} : {S}", "optional.of({s}).value()", "optional.ofNonZeroValue({s}).value()", "{l}.filter(e, e != {S})[0]", "{l}.max()", "{l}.min()",
			"string(quantity({Q}).asApproximateFloat())", "[{s}, {s}][{N}]", "{'k': {s}}['k']", "{'k': {s}}.j", "string(bytes({s}))", "{l}.first().orValue({S})", "{l}.last().value()",
			"format.dns1123Subdomain().validate({s}).value().join(' ')", "format.dns1035Label().validate({s}).orValue([])[0]",
		},
	},
	number: {
		leaves: []string{"{N}", "{N}", "size(request.name)", "int(object.spec.replicas)", "int({d})", "size({S})", "9223372036854775807", "-9223372036854775808", "size(request.userInfo.groups)"},
		branches: []string{
			"{i} + {i}", "{i} - {i}", "{i} * {i}", "{i} / {i}", "{i} % {i}", "-{i}", "{b} ? {i} : {i}", "size({s})", "size({l})", "int({s})", "int({f})", "int({d})", "{s}.size()", "{s}.indexOf({S})", "{s}.lastIndexOf({S})", "{s}.indexOf({S}, {N})",
			"{n}.sum()", "{n}.max()", "{n}.min()", "{n}[{N}]", "{n}.indexOf({i})", "{l}.lastIndexOf({S})", "quantity({Q}).asInteger()", "semver({V}).major() + semver({V}).minor()", "semver({V}).patch()", "cidr({C}).prefixLength()", "ip({P}).family()",
			"timestamp({T}).getFullYear()", "timestamp({T}).getHours('+01:00')", "duration({D}).getSeconds()", "duration({D}).getMilliseconds()", "int(timestamp({T}))", "size({d})", "{d}.size()", "int(uint({i}))", "size(bytes({s}))",
		},
	},
	double: {
		leaves:   []string{"1.5", "-0.0", "1e308", "double(object.spec.replicas)", "0.1"},
		branches: []string{"{f} + {f}", "{f} / {f}", "{f} * {f}", "double({i})", "double({s})", "double({d})", "quantity({Q}).asApproximateFloat()", "[{f}, {f}].max()"},
	},
	list: {
		leaves: []string{"['a', 'b', 'c']", "['a', 'b', 'c']", "request.userInfo.groups", "request.userInfo.extra['scopes']", "[]+['b', 'a']", "['x'].filter(e, false)", "namespaceObject.spec.finalizers", "namespaceObject.metadata.finalizers"},
		branches: []string{
			"[{s}, {s}]", "{l} + {l}", "{b} ? {l} : {l}", "{s}.split({S})", "{s}.split({S}, {N})", "{l}.map(e, e + {S})", "{l}.map(e, e != {S}, e + e)", "{l}.filter(e, e < {s})", "{l}.sort()", "{l}.distinct()", "{l}.reverse()", "{l}.slice(0, {N})", "[{l}, {l}].flatten()",
			"{l}.sortBy(e, size(e))", "lists.range({N}).map(k, string(k))", "{l}.transformList(k, v, v + string(k))", "{l}.transformList(k, v, k > {N}, v)", "{s}.findAll({R})", "{s}.findAll({R}, {N})", "{d}.map(e, string(e))", "object.spec.containers.map(c, string(c.image))",
			"[?optional.of({s}), ?optional.none()]", "format.dns1123Label().validate({s}).orValue([])", "{'a': {l}}['a']", "url({U}).getQuery()['q']", "object.spec.?nested.?list.orValue(['z']) == ['z'] ? {l} : ['q']",
		},
	},
	numbers: {
		leaves:   []string{"[3, 1, 2]", "[1, 2]", "lists.range({N})", "[0].filter(x, x > 0)"},
		branches: []string{"[{i}, {i}]", "{n} + {n}", "{n}.map(x, x * {i})", "{n}.sort()", "{l}.map(e, size(e))", "{d}.map(e, int(e))", "{n}.slice({N}, {N})", "{n}.distinct().reverse()"},
	},
	dynamic: {
		leaves: []string{
			"object.spec.replicas", "object.spec.name", "object.spec.items", "object.spec.flag", "object.spec.numbers", "object.spec.nested", "object.spec.missing", "object.spec.containers",
			"object.metadata.labels", "object.metadata.labels['app']", "object.metadata.labels['we/ird']", "object.metadata.annotations", "oldObject.spec.replicas", "oldObject.spec.items", "object.spec.containers[0].image", "object.spec.nested.a.b",
			"object.spec.quantity", "object.spec.zero", "object['spec']['items'][1]", "object.spec.image", "object.kind", "object.apiVersion", "oldObject.metadata.name", "request.options", "object", "oldObject", "object.spec.__namespace__", "object.spec.when",
			"object.command", "{O}", "{O}", "{O}",
		},
		branches: []string{
			"{d} + {N}", "{N} / {d}", "{d} + {S}", "{d}[{N}]", "{d}['a']", "{d}.?name.orValue({s})", "{d}[?'a'].orValue({i})", "dyn({s})", "dyn({i})", "dyn({l})", "{d}.filter(e, e != {S})", "{d}.map(e, e)", "{b} ? {d} : {d}", "[{d}, {d}]", "{'a': {d}}", "{d} == {S} ? dyn({i}) : {d}",
			"{d}.transformMap(k, v, string(v))", "{d}.sum()", "{d}.max()", "-{d}", "{d} % {N}", "{d}.a.b", "object.spec.containers.map(c, c.image)", "{d}.first().orValue('x')", "{d}.sort()", "{d}.flatten()", "{d}.distinct()",
		},
	},
}

// literals are what capitals stand for, some of them wrong.
var literals = map[byte][]string{
	'S': {`'a'`, `'nginx'`, `''`, `'prod'`, `','`, `'b'`, `'ü☃😀'`, `'/'`, `"it's"`, `'a\tb'`, `'3'`, `'true'`, `' x '`, `'e'`},
	'N': {"1", "0", "2", "3", "5", "-1", "10"},
	'R': {`'^n.*x$'`, `'[a-z]+'`, `'.'`, `''`, `'(a|b)*c?'`, `'\\d+'`, `'[^a]'`, "string(object.spec.name)"},
	'P': {"'192.168.1.5'", "string(object.spec.ip)", "'::1'", "'10.0.0.1'", "'300.0.0.1'", "'::ffff:1.2.3.4'", "'fe80::1'"},
	'C': {"'192.168.0.0/16'", "'10.0.0.0/8'", "'::/0'", "'192.168.1.5/24'", "'10.0.0.0/40'", "string(object.spec.ip) + '/32'"},
	'U': {"'https://example.com:80/a%20b?q=1'", "string(object.spec.url)", "'/path'", "'http://[::1]:1/'", "'../x'"},
	'Q': {"'1Gi'", "string(object.spec.quantity)", "'500m'", "'2k'", "'lots'", "'9999999999999999999999G'"},
	'V': {"'1.2.3'", "string(object.spec.version)", "'2.0.0-rc.1'", "'v1'", "'01.2.3'"},
	'T': {"'2026-01-02T03:04:05Z'", "string(object.spec.when)", "'2026-12-31T23:59:60+01:00'.replace('60', '59')"},
	'D': {"'1h'", "'90s'", "string(object.spec.when)", "'1500ms'"},
	'H': {
		"object.spec", "object.spec.name", "object.spec.replicas", "object.metadata.labels", "object.metadata.labels.app", "object.spec.nested.a.b", "oldObject.spec", "object.spec.missing.more",
		"object.metadata.annotations", "object.spec.containers[0].ports", "oldObject.metadata.labels.env", "object.status",
	},
	'A': {
		"authorizer.group('').resource('pods').check('get').allowed()", "authorizer.group('apps').resource('deployments').namespace('prod').name('x').check('delete').allowed()",
		"authorizer.requestResource.check('update').allowed()", "authorizer.requestResource.check('patch').errored()", "authorizer.path('/healthz').check('get').allowed()", "authorizer.path('').check('get').allowed()",
		"authorizer.serviceAccount('prod', 'builder').group('').resource('secrets').check('list').reason() == 'role 1'", "authorizer.serviceAccount('no such!', 'x').path('/x').check('get').allowed()",
		"authorizer.group('').resource('pods').fieldSelector('spec.nodeName=a').labelSelector('app=nginx').check('list').allowed()", "authorizer.group('').resource('pods').labelSelector('((').check('watch').allowed()",
		"authorizer.group('example.com').resource('gadgets').subresource('status').check('patch').error().contains('silent')", "authorizer.group('').resource('pods').check('create').error() == ''",
		"authorizer.requestResource.check({s}).allowed()", "authorizer.group(string({d})).resource({s}).check('use').reason().contains('e')", "authorizer.group('').resource('').check('get').allowed()",
	},
	// O is of the params when there are any.
	'O': {"params.data.limit", "params.spec.max", "params.spec.limit", "params.data.name", "params.metadata.name", "params", "params.spec.names", "params.metadata.labels.env", "params.spec.nested.a.b", "params.metadata.namespace", "params.kind", "params.data", "params.?spec.?max.orValue(2)", "params.immutable"},
}
