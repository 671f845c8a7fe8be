import { describe, expect, test } from 'vitest'
import { watchWork } from '../../../../test/support/pace.ts'
import { sha256 } from '../hash.ts'
import { secretsInCommand, shownWords } from './command-secrets.ts'
import { Secrets, withoutSecrets } from './secrets.ts'
import { isSecretName } from './shapes.ts'

const SECRET = 'hunter2-hunter3-hunter4'
const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('a known secret is taken out', () => {
  test.each<[string, string, string]>([
    ['as it is', `it is ${SECRET}.`, 'it is ***.'],
    ['twice', `${SECRET} ${SECRET}`, '*** ***'],
    ['without its end', `it is ${SECRET.slice(0, 14)}...`, 'it is ***...'],
    ['with a line break inside', `it is ${SECRET.slice(0, 5)}\n  ${SECRET.slice(5)}.`, 'it is ***.'],
    ['with invisible characters inside', `it is ${[...SECRET].join('\u200b')}.`, 'it is ***.'],
    ['with tag characters inside', `it is hunter2\u{E0041}${SECRET.slice(7)}.`, 'it is ***.'],
  ])('%s', (_, text, clean) => {
    expect(new Secrets([SECRET]).clean(text)).toBe(clean)
  })

  test.each([8_192, 8_193, 20_000, 131_000])(
    'with %i characters, whole and in part, as it is and as others write it',
    (length) => {
      const long = Array.from({ length: length / 64 + 1 }, (_, n) => sha256(`part ${n}`))
        .join('')
        .slice(0, length)
      const secrets = new Secrets([long])
      expect(secrets.clean(`it is ${long}.`)).toBe('it is ***.')
      expect(secrets.cleanAll([`it is ${long.slice(0, 5_000)}`, `${long.slice(5_000)}.`])).toEqual([
        'it is ***',
        '***.',
      ])
      for (const text of [long.slice(1_000, 1_100), base64(`x${long}y`), encodeURIComponent(`{${long}}`)]) {
        expect(secrets.clean(text).replaceAll('***', '').length).toBeLessThan(24)
      }
    },
  )

  test.each([0, 1, 2, 3])('as base64 with %i characters before it', (count) => {
    const coded = base64(`${'x'.repeat(count)}${SECRET}!`)
    const clean = new Secrets([SECRET]).clean(coded)

    expect(clean).toContain('***')
    expect(Buffer.from(clean.replaceAll('***', ''), 'base64').toString()).not.toMatch(/hunter/)
  })

  test('also when it is short, a secret of an address, or one with another inside it', () => {
    const secrets = new Secrets(['abc123', 'postgres://me:pa55word@localhost:5432/app', 'abc123abc123abc'])

    expect(secrets.clean('abc123 pa55word abc123abc123abc')).toBe('*** *** ***')
    expect(secrets.clean('http://localhost:5432/ postgres://other')).toBe('http://localhost:5432/ postgres://other')
  })

  test('when it is split over texts', () => {
    const secrets = new Secrets([SECRET, 'abc123'])

    expect(secrets.cleanAll([`it is ${SECRET.slice(0, 9)}`, `${SECRET.slice(9)} indeed`])).toEqual([
      'it is ***',
      '*** indeed',
    ])
    expect(secrets.cleanAll(['a', 'b', 'c\n', ' 1', '2', '3!'])).toEqual(['***', '***', '***', '***', '***', '***!'])
    expect(secrets.cleanAll(['nothing', '', 'here'])).toEqual(['nothing', '', 'here'])
  })

  test('I10: in time that grows with the text only', () => {
    const secrets = new Secrets(Array.from({ length: 50 }, (_, n) => `${SECRET}-${n}-${'x'.repeat(200)}`))
    const text = 'hunter2-hunte '.repeat(600_000)
    const since = performance.now()

    expect(secrets.clean(text)).toContain('***')
    expect(performance.now() - since).toBeLessThan(10_000)
  })

  test('what is too short to be one stays', () => {
    expect(new Secrets(['', 'a', 'yes']).clean('a yes')).toBe('a yes')
  })
})

describe('what looks like a secret is taken out of a text that is shown', () => {
  const random = 'Zq81Lm55Tt09Xx37Aa12Bb34Cc56Dd78Ee90'

  test.each([
    `sk-ant-${random}`,
    `sk_live_${random}`,
    `ghp_${random}`,
    `gho_${random}`,
    `github_pat_11AAAA_${random}`,
    `glpat-${random.slice(0, 20)}`,
    'AKIAIOSFODNN7EXAMPLE',
    `xoxb-123456789012-${random}`,
    `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.${random}`,
    `hf_${random}`,
    `npm_${random}`,
    `pypi-${random}`,
    `AIza${random}`,
    `-----BEGIN RSA PRIVATE KEY-----\nMIIE${random}\nab+/${random}==\n-----END RSA PRIVATE KEY-----`,
    `LTAI${random.slice(0, 20)}`,
    `abc8Q~${random.slice(0, 34)}`,
    `shpat_${'0a1b2c3d'.repeat(4)}`,
    `sntrys_eyJ${random}`,
    `glsa_${random.slice(0, 32)}_0a1b2c3d`,
    `NRAK-${random.slice(0, 27).toUpperCase()}`,
    `PMAK-${random}`,
    `xkeysib-${random}`,
    `key-${'0a1b2c3d'.repeat(4)}`,
    `ATATT3${random}`,
    `EAAA${random}${random}`,
    `123456789:A${random.slice(0, 34)}`,
    `${'0a1b2c3d'.repeat(4)}-us12`,
    `${random.slice(0, 14)}.atlasv1.${random}${random}`,
    `dp.pt.${random}`,
    `tvly-${random}`,
    `nvapi-${random}`,
    `figd_${random}`,
    `SK${'0a1b2c3d'.repeat(4)}`,
    `SG.${random.slice(0, 22)}.${random}`,
  ])('%s', (key) => {
    const shown = withoutSecrets(`The key "${key}" is wrong, see max_tokens=4096.`, [])

    expect(shown).toBe('The key "***" is wrong, see max_tokens=4096.')
  })

  test.each([
    [`aws_secret_access_key = ${random}`, 'aws_secret_access_key = ***'],
    [`"SecretAccessKey" : "${random}"`, '"SecretAccessKey" : "***"'],
    ['{\\"password\\": \\"hunter2\\"}', '{\\"password\\": \\"***\\"}'],
    ["passphrase => 'hunter2'", "passphrase => '***'"],
    ['Server=db;Uid=me;Pwd=hunter2', 'Server=db;Uid=me;Pwd=***'],
    ['mongodb+srv://me:a/b#c@host/db', 'mongodb+srv://***@host/db'],
    [`https://hooks.slack.com/services/T0/B0/${random}`, 'https://hooks.slack.com/services/***'],
  ])('behind its name, or in an address: %s', (text, shown) => {
    expect(withoutSecrets(text, [])).toBe(shown)
  })

  test('plain words stay', () => {
    const words =
      'sha256:0a1b, jina_embeddings_v3_base_model_name, ico-arrow-left, the password: unknown, key-value, npm_config_cache, hf_hub, sketch-book, a task-list, eyJust. AKIA, -----BEGIN CERTIFICATE-----'

    expect(withoutSecrets(words, [])).toBe(words)
  })

  test('I10: in time that grows with the text only', () => {
    const since = performance.now()
    for (const part of [
      '//',
      'Bearer ',
      'key: ',
      'eyJaaaaaaaa.',
      '-----BEGIN PRIVATE KEY-----',
      'sk-',
      'token=',
      'a=',
    ]) {
      withoutSecrets(part.repeat(Math.ceil(200_000 / part.length)), [])
    }

    expect(performance.now() - since).toBeLessThan(5_000)
  })
})

describe('a command line is shown without its secrets', () => {
  const KEY = 'Zq81Lm55Tt09Xx37Aa12Bb34'
  const shownKey = `***(24:${sha256(KEY).slice(0, 4)})`

  test.each<[string, readonly string[], string]>([
    ['an option', ['deploy', '--token', KEY, 'now'], `deploy --token ${shownKey} now`],
    ['an option with =', ['deploy', `--api-key=${KEY}`], `deploy --api-key=${shownKey}`],
    ['a variable', ['env', `GITHUB_PAT=${KEY}`, 'PLAIN=x', 'deploy'], `env GITHUB_PAT=${shownKey} PLAIN=x deploy`],
    ['user and password', ['curl', '-u', `me:${KEY}`, 'http://host'], `curl -u me:${shownKey} http://host`],
    ['a header', ['curl', '-H', `Authorization: Bearer ${KEY}`], `curl -H Authorization: Bearer ${shownKey}`],
    ['a header of a server', ['npx', 's', '--header', `A: Bearer ${KEY}`], `npx s --header A: Bearer ${shownKey}`],
    ['an address', ['psql', `postgres://me:${KEY}@host/db`], `psql postgres://me:${shownKey}@host/db`],
    ['a key', ['curl', '-d', `x sk-${KEY};y`], `curl -d x ***(27:${sha256(`sk-${KEY}`).slice(0, 4)});y`],
    ['a web token', ['x', '--jwt', `${KEY}.${KEY}`], `x --jwt ***(49:${sha256(`${KEY}.${KEY}`).slice(0, 4)})`],
    ['options of a script', ['node', 'server.mjs', '--token', KEY], `node server.mjs --token ${shownKey}`],
    ['a secret that is known', ['deploy', SECRET], `deploy ***(23:${sha256(SECRET).slice(0, 4)})`],
    ['one in a script', ['sh', '-c', `x ${SECRET};y`], `sh -c x ***(23:${sha256(SECRET).slice(0, 4)});y`],
  ])('%s', (_, words, shown) => {
    expect(shownWords(words, [SECRET]).join(' ')).toBe(shown)
  })

  test('two values that are hidden can be told apart', () => {
    const other = KEY.replace('Zq', 'Zr')

    expect(shownWords(['x', '--token', other])).not.toEqual(shownWords(['x', '--token', KEY]))
  })

  test.each<[string, readonly string[]]>([
    [
      'options that only sound like it',
      ['vitest', '--pass-with-no-tests', 'file', '--max-tokens', '5', '--token-file', 'x'],
    ],
    ['an option without a value', ['deploy', '--token', '--force']],
    ['what a shell would run', ['sh', '-c', 'deploy --token "$(rm -rf x)" --password `id` --secret $X']],
    ['a value with spaces', ['deploy', '--password', 'a b c']],
    ['a secret that is a path', ['node', './evil.cjs', './evil.cjs']],
    ['what an interpreter would run', ['node', '-e', 'PAYLOAD()', '--', '--token', 'PAYLOAD']],
    ['what a shell would be given', ['sh', '-c', '$1', '--token', 'evil']],
    ['what a variable would run', ['sh', '-c', 'TOKEN=evil; $TOKEN']],
    ['a package', ['npx', '--token', 'evil', 'server']],
    ['a package of a command', ['npm', 'exec', '--token', 'evil', 'server']],
    ['a package behind another program', ['sudo', '-u', 'me', 'npx', '--token', 'evil', 'server']],
    ['a file that looks like a user', ['python3', '-u', 'a:evil']],
    ['a path that looks like a key', ['node', './sk-evilscript1.mjs', 'x/sk-evilscript1']],
    ['a path behind a name', ['deploy', '--token', './evil', 'TOKEN=./evil']],
    ['an ordinary word behind a name', ['x', '--token', 'id', 'TOKEN=id', '--key=id', 'a://id:id@h', 'Bearer id']],
    ['a long name', ['x', '--token', 'run-the-evil-script-number-2', 'TOKEN=evilScriptOfMineNumber2']],
    ['a long path', ['x', `--token=a/${KEY}/evil.sh`, '--token', 'node_modules/evil/index2']],
    ['a word for a shell', ['sh', `token=${KEY}`, `sk-${KEY}`]],
    ['a script', ['sh', '-c', `deploy --secret=${KEY} && sk-${KEY}`]],
    ['code', ['node', '--import', 'x', '-e', `token="${KEY}";eval(atob(token))`]],
    ['code of another interpreter', ['python3', '-c', `import os\ntoken="${KEY}"\nos.system(token)`]],
    ['a variable of make', ['make', '-f', 'mk', `TOKEN=${KEY}`]],
    ['a script in a private key', ['sh', '-c', '-----BEGIN PRIVATE KEY-----\ntouch x']],
  ])('I11 %s stay to be seen', (_, words) => {
    expect(shownWords(words, ['./evil.cjs', 'a b c']).join(' ')).toBe(words.join(' '))
  })

  test.each([
    ['curl http://h/?token=abc;echo$IFS>PWNED', ';echo$IFS>PWNED'],
    ['notes-server --token=abc;echo$IFS>PWNED', ';echo$IFS>PWNED'],
    ['TOKEN=abc; anything at all', '; anything at all'],
    ['TOKEN=abc|evil', '|evil'],
    ['x //a;evil:b@c', ';evil'],
    ['curl -H "Authorization: Bearer abc;evil"', ';evil'],
    ['token: abcdefgh1234567890;evil', ';evil'],
  ])('I11 a mark hides nothing that a shell would run: %s', (script, payload) => {
    for (const words of [
      ['sh', '-c', script],
      ['x', script],
      ['node', 'x', script],
    ]) {
      expect(shownWords(words).at(-1)).toContain(payload)
    }
  })

  test('I10 in time linear in its length', () => {
    const work = watchWork()
    for (const part of [
      'token:',
      'token=',
      '//a',
      'a=',
      'sk-',
      '*sk-aaaaaaaaa',
      'Bearer ',
      '--',
      'eyJaaaaaaaa.',
      'env ',
      '//a:',
    ]) {
      shownWords(['x', part.repeat(Math.ceil(400_000 / part.length)), '../'])
      shownWords(['env', ...Array.from({ length: 40_000 }, () => part)])
    }

    expect(work()).toBeLessThan(5_000)
  })

  test('the secrets in it can be known', () => {
    expect(secretsInCommand(['x', '--token', 'abc', 'API_KEY=def', '-u', 'me:ghi', 'plain'])).toEqual([
      'abc',
      'def',
      'ghi',
    ])
  })
})

test.each<[boolean, readonly string[]]>([
  [true, ['API_KEY', 'apiKey', 'x-api-key', 'GITHUB_PAT', 'SMTP_PASS', 'PGPASSWORD', 'MYSQL_PWD', 'Authorization']],
  [true, ['NPM_TOKEN', 'npm_config_//registry.npmjs.org/:_authToken', 'SECRET_KEY_BASE', 'OP_SESSION_my', 'cookie']],
  [false, ['PWD', 'OLDPWD', 'PATH', 'MAX_TOKENS', 'TOKENIZERS_PARALLELISM', 'BYPASS', 'PATIENCE', 'MONKEY', 'author']],
])('names of secrets: %s', (isOne, names) => {
  expect(names.filter((name) => isSecretName(name) !== isOne)).toEqual([])
})
