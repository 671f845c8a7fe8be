import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isVisible } from '../base/text.ts'
import { decide } from './decide.ts'
import { type Grant, useLayer } from './grant.ts'
import {
  hostRequest,
  type ProgramVariable,
  programRequest,
  readRequest,
  requestText,
  secretRequest,
} from './request.ts'
import { readRule } from './rule.ts'
import { readWords, showWords } from './words.ts'

const allows = (rule: string, request: ReturnType<typeof readRequest>) =>
  decide([useLayer('me', { use: [rule] })], request).verdict === 'allow'

describe('the request of a program', () => {
  test.each<[readonly string[], string]>([
    [['git', 'status'], 'git status'],
    [['git', 'commit', '-m', 'two words'], "git commit -m 'two words'"],
    [['echo', "it's"], `echo 'it'"'"'s'`],
    [['echo', ''], "echo ''"],
    [['echo', "'"], `echo "'"`],
    [['ls x/../../../../bin/sh', '-c', 'id'], '../../../bin/sh -c id'],
    [['ls x', '-c', 'id'], "'ls x' -c id"],
    [['sh', '-c', 'git status; rm x'], "sh -c 'git status; rm x'"],
    [['X=1', 'git'], "'X=1' git"],
    [['env', 'X=1', 'git'], 'env X=1 git'],
    [['git\u00a0status'], "'git\u00a0status'"],
    [['echo', 'a\nb', '*', '~', '$HOME', '#'], "echo 'a\nb' '*' '~' '$HOME' '#'"],
    [['./ls'], './ls'],
    [['bin/../ls'], './ls'],
    [['bin/ls'], './bin/ls'],
    [['/usr//bin/./../bin/ls'], '/usr/bin/ls'],
    [['/../../bin/ls'], '/bin/ls'],
    [['../x/../ls'], '../ls'],
  ])('%j is %s', (argv, text) => {
    expect(programRequest(argv).name).toBe(text)
  })

  test('says in its text what is run, and nothing else can be read in it: 5,000 command lines', () => {
    const word = fc.string({ unit: fc.constantFrom('a', ' ', "'", '"', '*', '\\', '$', '\n', '/', '-', 'é', '=') })
    fc.assert(
      fc.property(word, fc.array(word, { maxLength: 4 }), fc.option(word), (end, args, folder) => {
        const { name, argv } = programRequest([`p${end}`, ...args])
        expect(readWords(name)).toEqual(argv)
        expect(programRequest(argv)).toEqual(programRequest([`p${end}`, ...args]))
        expect(readRule(`exec:${name}`).pattern).toBe(programRequest(argv).key)
        const placed = programRequest(argv, { folder })
        expect(readRequest(`exec:${placed.name}`)).toEqual(placed)
        expect(readRule(`exec:${placed.name}`).pattern).toBe(placed.key)
      }),
      { numRuns: 5_000 },
    )
  })

  test.each([[[]], [['']], [['-c', 'id']], [['ls\0x']], [['ls', '\0']]])('%j is refused', (argv) => {
    expect(() => programRequest(argv)).toThrow(expect.objectContaining({ code: 'invalid_input' }))
  })

  test.each<[string, readonly string[], boolean]>([
    ['exec:ls *', ['ls', 'x'], true],
    ['exec:ls *', ['ls', 'a b', "it's"], true],
    ['exec:ls *', ['ls'], false],
    ['exec:ls', ['ls'], true],
    ['exec:ls *', ['ls x', 'y'], false],
    ['exec:ls *', ['ls x/../../../../bin/sh', '-c', 'id'], false],
    ['exec:ls *', ['./ls', 'x'], false],
    ['exec:ls *', ['ls\u00a0x'], false],
    ['exec:ls *', ['ls\t', 'x'], false],
    ['exec:ls *', ['env', 'ls', 'x'], false],
    ['exec:ls *', ['sh', '-c', 'ls x'], false],
    ['exec:npm test*', ['npm', 'test'], true],
    ['exec:npm test*', ['npm', 'test', '--', 'x'], true],
    ['exec:npm test*', ['npm', 'test:all'], true],
    ['exec:npm test*', ['npm', 'run', 'evil'], false],
    ['exec:npm test *', ['npm', 'testing'], false],
    ['exec:git * -- *', ['git', 'push -- x'], false],
    ['exec:git * -- *', ['git', 'log', '--', 'x'], true],
    ['exec:git commit -m "two words"', ['git', 'commit', '-m', 'two words'], true],
    ["exec:git commit -m 'two words'", ['git', 'commit', '-m', 'two', 'words'], false],
    ['exec:git   status', ['git', 'status'], true],
    ["exec:ls '*.ts'", ['ls', '*.ts'], true],
    ["exec:ls '*.ts'", ['ls', 'a.ts'], false],
    ['exec:ls *.ts', ['ls', '*.ts'], true],
    ['exec:rm *s', ['rm', '*'], false],
    ['exec:./scripts/*', ['scripts/a.sh', 'x'], true],
    ['exec:scripts/a.sh', ['./scripts/./a.sh'], true],
    ['exec:./scripts/*', ['./scripts/../evil.sh'], false],
    ['exec:/opt/tools/*', ['/opt/tools/../../bin/sh', '-c', 'id'], false],
    ['exec:*/git status', ['/usr/bin/git', 'status'], true],
    ['exec:*', ['anything', 'at all'], true],
  ])('the rule %s and %j: %s', (rule, argv, expected) => {
    expect(allows(rule, programRequest(argv))).toBe(expected)
  })

  test.each<[string, string | null, readonly string[], boolean]>([
    ['exec:make', '/workspace/tmp', ['make'], false],
    ['exec:make', null, ['make'], true],
    ['exec:cd /workspace/tmp && make', '/workspace/tmp', ['make'], true],
    ['exec:cd /workspace/tmp && make', '/workspace/other', ['make'], false],
    ['exec:cd /workspace/tmp && make', null, ['make'], false],
    ['exec:cd /workspace/tmp && make', null, ['cd', '/workspace/tmp', '&&', 'make'], false],
    ['exec:cd /workspace/* && git *', '/workspace/a b', ['git', 'log'], true],
    ['exec:cd *', '/workspace/tmp', ['make'], true],
    ['exec:*', '/workspace/tmp', ['make'], true],
  ])('the rule %s, in %j, for %j: %s', (rule, folder, argv, expected) => {
    expect(allows(rule, programRequest(argv, { folder }))).toBe(expected)
  })

  test('what is forbidden or asked for anywhere is so in every folder', () => {
    const request = programRequest(['rm', '-rf', 'x'], { folder: '/workspace/tmp' })
    const verdict = (grant: Grant) => decide([useLayer('me', { use: ['exec:*'], ...grant })], request).verdict

    expect(verdict({ deny: ['exec:rm *'] })).toBe('deny')
    expect(verdict({ ask: ['exec:rm *'] })).toBe('ask')
    expect(verdict({ deny: ['exec:cd /workspace/tmp && *'] })).toBe('deny')
    expect(verdict({ deny: ['exec:make'] })).toBe('allow')
  })

  test.each<[string, readonly string[], string]>([
    ['a line break', ['sh', '-c', 'server # it\ntouch x'], "exec:sh -c $'server # it\\ntouch x'"],
    ['a line break that is only written', ['sh', '-c', 'a\\nb'], "exec:sh -c 'a\\nb'"],
    ['both', ['sh', '-c', "a\\n\n'b'"], "exec:sh -c $'a\\\\n\\n\\'b\\''"],
    ['a control', ['echo', 'x\u009b;touch y'], "exec:echo $'x\\u009b;touch y'"],
    ['a mark of direction', ['echo', 'x\u202ey'], "exec:echo $'x\\u202ey'"],
    ['no width', ['git\u200b', 'status'], "exec:$'git\\u200b' status"],
  ])('I11 shows %s', (_, argv, shown) => {
    expect(requestText(programRequest(argv))).toBe(shown)
  })

  test('I11 no two command lines are shown as one', () => {
    const pieces = fc.constantFrom(...'a\'\\\n\u009b$ n"', '\u200b', "$'")
    const line = fc.array(
      fc.array(pieces).map((parts) => parts.join('')),
      { minLength: 1, maxLength: 3 },
    )
    fc.assert(
      fc.property(line, line, (one, other) => {
        const [a, b] = [one, other].map((words) => requestText(programRequest(['x', ...words])))
        expect(a === b).toBe(JSON.stringify(one) === JSON.stringify(other))
        expect(isVisible(a ?? '')).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  test.each<[readonly string[]]>([
    [['env', 'TOKEN=id', 'sh', '-c', '$TOKEN']],
    [['sh', '-c', 'alias token=id\ntoken']],
    [['sh', '-c', 'true --password=id; $_']],
    [['sh', '-c', `true token=id; \${_#token=}`]],
    [['sh', 'token=evil']],
    [['sh', '-c', '. ./token=evil']],
    [['sh', '-c', 'sh sk-proj-Zq81Lm55Tt09Xx37Aa12Bb34Cc56Dd78Ee90Ff; true']],
    [['sh', '-c', 'PATH=.:$PATH; sk-proj-Zq81Lm55Tt09Xx37Aa12Bb34Cc56Dd78Ee90Ff']],
    [['sh', '-c', `set -- --token=id; \${1#*=}`]],
    [['sh', '-c', 'echo password=id | (IFS== read a b; $b)']],
    [['sh', '-c', 'echo token=id | cut -d= -f2 | sh']],
    [['python3', '-c', 'import os\ntoken=os.system\ntoken("id")']],
    [['sh', '-c', 'cut -d= -f2 <<E | sh\napi_key=id\nE']],
    [['make', '-f', 'mk', 'TOKEN=id']],
    [['git', '-c', 'alias.token=!id', 'token']],
    [['sh', '-c', `"\${0#*=}"`, 'token=id']],
    [['sh', '-c', 'echo Bearer id | cut -d" " -f2 | sh']],
    [['awk', 'BEGIN{system(substr(ARGV[1],10,2))}', 'http://a:id@h']],
  ])('I11 shows all that would run: %j', (argv) => {
    expect(requestText(programRequest(argv))).toBe(`exec:${showWords(argv)}`)
  })

  test('shows no secret, and an answer holds for the real one', () => {
    const [one, other] = ['Zq81Lm55Tt09Xx37Aa12Bb34', 'Zq81Lm55Tt09Xx37Aa12Bb35'].map((key) =>
      programRequest(['npx', 'server', '--key', key, 'k3y-value'], { secrets: ['k3y-value'] }),
    )

    expect(requestText(one as never)).toMatch(/^exec:npx server --key '\*\*\*\(24:\w{4}\)' '\*\*\*\(9:\w{4}\)'$/)
    expect(requestText(one as never)).not.toBe(requestText(other as never))
    expect(decide([useLayer('me', { use: [] })], one as never).reason).not.toMatch(/Zq81|k3y/)
    expect(allows('exec:npx server --key Zq81Lm55Tt09Xx37Aa12Bb34 *', one as never)).toBe(true)
    expect(allows('exec:npx server --key Zq81Lm55Tt09Xx37Aa12Bb34 *', other as never)).toBe(false)
    expect(one?.version).not.toBe(other?.version)
  })
})

describe('I11 the request of a program with variables', () => {
  const secret: ProgramVariable = { name: 'TOKEN', value: 'of-somebody', kind: 'secret' }
  const data: ProgramVariable = { name: 'LANG', value: 'C', kind: 'data' }
  const other: ProgramVariable = { name: 'HOME', value: '/x', kind: 'other' }
  const filled: ProgramVariable = { name: 'KEY', value: `a $${'{'}B}`, kind: 'filled' }
  const made = (...variables: ProgramVariable[]) => programRequest(['node', 's.mjs'], { variables })

  test('names all of them, a secret by its fingerprint; it starts with them, and no secret is among its words', () => {
    const request = made(data, secret, other, filled)

    expect(requestText(request)).toMatch(
      /^exec:env LANG=C 'TOKEN=\*{3}\(11:[0-9a-f]{4}\)' HOME=\/x 'KEY=a \$\{B\}' node s\.mjs$/,
    )
    expect(request.argv).toEqual(['env', 'HOME=/x', 'node', 's.mjs'])
    expect(request.variables).toEqual({ LANG: 'C', TOKEN: 'of-somebody' })
    expect(made().argv).toEqual(['node', 's.mjs'])
  })

  test.each<[string, ProgramVariable[], boolean]>([
    ['exec:node s.mjs', [], true],
    ['exec:node s.mjs', [data], true],
    ['exec:node s.mjs', [secret], false],
    ['exec:node s.mjs', [other], false],
    ['exec:node s.mjs', [filled], false],
    ['exec:node *', [secret], false],
    ['exec:env TOKEN=* node s.mjs', [secret], true],
    ['exec:env TOKEN=* node s.mjs', [secret, data], true],
    ['exec:env TOKEN=* node s.mjs', [secret, other], true],
    ['exec:env TOKEN=*', [secret], true],
    ['exec:env LANG=C node s.mjs', [data], true],
    ['exec:env LANG=D node s.mjs', [data], false],
    ['exec:*', [secret, data, other, filled], true],
  ])('the rule %s, with %j: %s', (rule, variables, expected) => {
    expect(allows(rule, made(...variables))).toBe(expected)
    const denying = useLayer('me', { use: ['exec:*'], deny: [rule] })
    expect(decide([denying], made(...variables)).verdict).toBe(
      expected || rule.startsWith('exec:node') ? 'deny' : 'allow',
    )
  })

  test('a rule that is copied from what is shown allows it, and not the same name with another value', () => {
    const rule = requestText(made(secret))
    const bare = rule.replaceAll("'", '')

    for (const written of [rule, bare]) {
      expect(allows(written, made(secret))).toBe(true)
      expect(allows(written, made({ ...secret, value: 'of-the-other' }))).toBe(false)
      expect(allows(written, made({ ...secret, value: 'of-anybody!' }))).toBe(false)
    }
  })

  test('an answer holds for its value, also where the fingerprint is the same', () => {
    const versions = ['of-somebody', 'of-anybody!', ''].map((value) => made({ ...secret, value }).version)

    expect(new Set(versions).size).toBe(3)
    expect(made(secret).version).toBe(versions[0])
  })

  test('what a model types is no definition: a rule does not see through its variables', () => {
    const typed = readRequest('exec:env LANG=C node s.mjs')
    const layers = [useLayer('me', { use: ['exec:node s.mjs'] })]

    expect(decide(layers, made(data)).verdict).toBe('allow')
    expect(decide(layers, typed).verdict).toBe('deny')
    expect(decide(layers, made(data)).verdict).toBe('allow')
  })
})

test('a secret asks by its name, and a pattern names several', () => {
  const verdict = (rule: string, name: string) => decide([useLayer('me', { use: [rule] })], secretRequest(name)).verdict

  expect(requestText(secretRequest('GITHUB_PAT'))).toBe('secret:GITHUB_PAT')
  expect(requestText(secretRequest('A\u200bB'))).toBe('secret:"A\\u200bB"')
  expect(verdict('secret:GITHUB_*', 'GITHUB_PAT')).toBe('allow')
  expect(verdict('secret:GITHUB', 'GITHUB_PAT')).toBe('deny')
  expect(verdict('secret:github_*', 'GITHUB_PAT')).toBe('deny')
  expect(verdict('net:*', 'GITHUB_PAT')).toBe('deny')
  expect(readRequest('secret:GITHUB_PAT')).toMatchObject({ domain: 'secret', name: 'GITHUB_PAT' })
})

describe('the request of a host', () => {
  test.each([
    ['https://evil.test/x', 'evil.test'],
    ['https://EVIL.test./', 'evil.test'],
    ['https://evil.test..:8443/', 'evil.test'],
    ['https://user:pw@evil.test', 'evil.test'],
    ['http://good.test@evil.test', 'evil.test'],
    ['http://evil.test\\@good.test', 'evil.test'],
    ['http://[::ffff:127.0.0.1]/', '127.0.0.1'],
    ['http://[::FFFF:7f00:1]/', '127.0.0.1'],
    ['http://0x7f.1/', '127.0.0.1'],
    ['http://2130706433', '127.0.0.1'],
    ['http://0177.0.0.01', '127.0.0.1'],
    ['http://127.1', '127.0.0.1'],
    ['http://[::1]', '[::1]'],
    ['http://[0:0:0:0:0:0:0:1]', '[::1]'],
    ['http://exämple.test', 'xn--exmple-cua.test'],
    ['http://ＥＶＩＬ。test', 'evil.test'],
    ['http://evil%2Etest', 'evil.test'],
    ['evil.test:443', 'evil.test'],
    ['evil.te\nst', 'evil.test'],
    ['ssh://EVIL.test', 'evil.test'],
    ['ssh://EVIL.test.:22/x', 'evil.test'],
    ['ssh:\n//EVIL.test', 'evil.test'],
    ['ssh://%65vil.test', 'evil.test'],
    ['ssh://evil%E3%80%82test', 'evil.test'],
    ['ssh://go%C2%ADod.test', 'good.test'],
    ['git+ssh://good.test@EVIL.test/x', 'evil.test'],
    ['postgres://user:pw@0x7f.1:5432/db', '127.0.0.1'],
    ['redis://2130706433', '127.0.0.1'],
    ['redis://[::ffff:127.0.0.1]:6379', '127.0.0.1'],
    ['redis://[0:0:0:0:0:0:0:1]', '[::1]'],
    ['ssh://exämple.test', 'xn--exmple-cua.test'],
  ])('P10 %j is %s, and so is the host of what is reached', (address, host) => {
    const { name, url } = hostRequest(address)

    expect(name).toBe(host)
    expect(hostRequest(url)).toEqual(hostRequest(address))
    expect(decide([useLayer('me', { use: ['net:*'], deny: [`net:${host}`] })], hostRequest(address)).verdict).toBe(
      'deny',
    )
  })

  test('is reached by the name that was decided, whatever the scheme', () => {
    expect(hostRequest('postgres://u:p@0x7f.1:5432/db?x=1').url).toBe('postgres://u:p@127.0.0.1:5432/db?x=1')
    expect(hostRequest('ssh://%65VIL.test/x').url).toBe('ssh://evil.test/x')
  })

  test.each([
    ['net:EVIL.test', 'https://evil.test'],
    ['net:evil.test.', 'https://evil.test'],
    ['net:evil.test:443', 'https://evil.test'],
    ['net:[::ffff:127.0.0.1]', 'http://127.0.0.1:3000'],
    ['net:::1', 'http://[::1]:3000'],
    ['net:2130706433', 'http://localhost.:80', false],
    ['net:exämple.test', 'http://xn--exmple-cua.test'],
    ['net:*.Example.com', 'https://a.b.EXAMPLE.com.'],
    ['net:*.example.com', 'https://example.com', false],
    ['net:*.example.com', 'https://evilexample.com', false],
    ['net:*.example.com', 'https://x.example.com.evil.test', false],
    ['net:*', 'http://anything'],
    ['net:192.168.*', 'http://0300.0250.1.1'],
  ])('the rule %s is for %s', (rule, address, expected = true) => {
    expect(allows(String(rule), hostRequest(String(address)))).toBe(expected)
  })

  test.each([
    ...[
      '',
      'http://',
      'a b',
      'http://%',
      'ssh://',
      'ssh://%',
      'ssh://evil%2Ftest',
      'ssh://1.2.3.4.5',
      'redis://256.0.0.1',
    ],
    ...['ssh:evil.test/://', 'mongodb://good.test,evil.test/db'],
  ])('%j is refused', (address) => {
    expect(() => hostRequest(address)).toThrow(expect.objectContaining({ code: 'invalid_input' }))
  })
})

describe('a request that is given as a text', () => {
  test.each([
    ['exec:git status', 'exec:git status'],
    ["exec:sh -c 'git status; rm x'", "exec:sh -c 'git status; rm x'"],
    ['exec:git status; rm x', "exec:'git status; rm x'"],
    ['exec:git $(rm x)', "exec:'git $(rm x)'"],
    ['exec: git', "exec:' git'"],
    ['net:https://EVIL.test./x', 'net:evil.test'],
    ['tool:x', 'tool:x'],
    ['tool:x\u009by', 'tool:"x\\u009by"'],
    ['file.write:/workspace/a\nb', 'file.write:"/workspace/a\\nb"'],
    ['tool:"x"', 'tool:"\\"x\\""'],
    ['exec:', 'unreadable:"" is not a name of a program'],
    ['net:a b', 'unreadable:"a b" has no host'],
  ])('%j is %s', (given, text) => {
    expect(requestText(readRequest(given))).toBe(text)
  })

  test('and cannot be read is allowed by no rule', () => {
    const everything = ['exec:*', 'net:*', 'tool:*', 'file.*:**']

    for (const text of ['exec:', 'exec:a\0b', 'net:', 'net:a b']) {
      expect(decide([useLayer('me', { use: everything })], readRequest(text)).verdict).toBe('deny')
    }
  })
})
