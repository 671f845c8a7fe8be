import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { validateDefinition } from 'legate/recipe'
import { beforeEach, describe, expect, test } from 'vitest'
import { localStore } from '../support/rows.ts'
import { skipUnlessBuilt } from './support/cli.ts'
import { serveModel } from './support/model-server.ts'
import { project } from './support/project.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

const RECIPE = `title: T
description: D
instructions: You explain.
prompt: "Explain {{ topic }} to {{ reader }}."
parameters:
  - {key: topic, input_type: string, requirement: required, description: what to explain}
  - {key: reader, input_type: select, requirement: optional, description: for whom, default: a child, options: [a child, an expert]}
`
const AGENT = '---\nname: reviewer\ndescription: Reviews.\n---\n\nYou review.\n'

describe('legate run, in a pipe', () => {
  test('prints the answer alone to stdout, and what happens to stderr; sends what explain shows, and goes on with no run of others', async () => {
    const place = project({ 'a.yaml': `${RECIPE}settings: {temperature: 0.2, max_turns: 3}\n` })
    const [orphan = ''] = await place.orphans('talker')
    const mock = await serveModel(place, (one) => one.on({}, { content: 'It is fast.' }))

    const { code, stdout, stderr } = await place.run(['run', 'a.yaml', '--param', 'topic=QUIC'])
    const sent = JSON.stringify(mock.getLastRequest()?.body)
    const explained = await place.run(['explain', 'a.yaml', '-p', 'topic=QUIC', '--json'])
    const { system, messages, tools, limits, costBound } = JSON.parse(explained.stdout) as {
      system: string
      messages: readonly { content: string }[]
      tools: readonly { name: string }[]
      limits: object
      costBound: { usd: number }
    }

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'It is fast.\n' })
    expect(stderr).toMatch(/ input: the prompt of "\w.*" with topic=QUIC\n/)
    expect(stderr).not.toContain('Explain QUIC to a child.')
    expect(sent).toContain('You explain.')
    expect(sent).toContain(JSON.stringify(system).slice(1, -1))
    expect(sent).toContain(JSON.stringify(messages[0]?.content).slice(1, -1))
    for (const { name } of tools) expect(sent).toContain(`"${name}"`)
    expect(limits).toMatchObject({ modelCalls: 3 })
    expect(costBound.usd).toBeCloseTo(12)
    expect(localStore(place.runtime()).turn(orphan)?.state).toBe('running')
  })

  test('a prompt of many lines is one line on stderr; words that were typed are shown, cut to one', async () => {
    const prompt = `First.\n${'More of it.\n'.repeat(200)}`
    const place = project({ 'a.yaml': `title: Long one\ndescription: D\nprompt: ${JSON.stringify(prompt)}\n` })
    await serveModel(place, (one) => one.on({}, { content: 'Done.' }))

    const own = await place.run(['run', 'a.yaml'])
    const typed = await place.run(['run', 'a.yaml', `Second.\n${'More of it.\n'.repeat(200)}`])

    expect(own.stderr).toMatch(/ input: the prompt of "Long one"\n/)
    expect(own.stderr).not.toContain('More of it')
    expect(typed.stderr).toMatch(/ input: Second\. More of it\..*…\n/)
    for (const { stderr } of [own, typed]) expect(stderr.split('\n').length).toBeLessThan(12)
  })

  test('--json is one event a line, the last of them the end with its outcome; a value is text, whatever YAML or template is in it; --model is used instead of the one of the file', async () => {
    const place = project({ 'a.yaml': `${RECIPE}settings: {goose_provider: anthropic, goose_model: claude-x}\n` })
    const mock = await serveModel(place, (one) => one.on({}, { content: 'It is fast.' }))
    const value = 'x"\nsettings: {goose_model: evil}\n- {{ reader }} {% raw %} #'

    const options = ['--model', 'openai/gpt-5-mini', '--json']
    const { code, stdout } = await place.run(['run', 'a.yaml', '-p', `topic=${value}`, ...options])
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; outcome?: object })

    expect(code).toBe(0)
    expect(events.map(({ type }) => type)).toContain('message')
    expect(events.at(-1)).toMatchObject({ type: 'run-end', outcome: { status: 'completed' } })
    expect(mock.getLastRequest()?.body).toMatchObject({ model: 'gpt-5-mini' })
    expect(JSON.stringify(mock.getLastRequest()?.body)).toContain(
      JSON.stringify(`Explain ${value} to a child.`).slice(1, -1),
    )
  })

  test('words after the file are what it is asked; - takes them from stdin; a name is enough where it is found', async () => {
    const place = project({ '.claude/agents/reviewer.md': AGENT })
    const mock = await serveModel(place, (one) => one.on({}, { content: 'Fine.' }))
    writeFileSync(path.join(place.folder, 'diff.txt'), 'one line\nanother\n')

    const word = await place.run(['run', 'reviewer', 'Look at src.'])
    const asked = JSON.stringify(mock.getLastRequest()?.body)
    const piped = await place.run(['run', '.claude/agents/reviewer.md', '-'], {
      input: readFileSync(path.join(place.folder, 'diff.txt'), 'utf8'),
    })

    expect([word.stdout, piped.stdout]).toEqual(['Fine.\n', 'Fine.\n'])
    expect(asked).toContain('Look at src.')
    expect(JSON.stringify(mock.getLastRequest()?.body)).toContain('one line\\nanother')
  })

  test('another end than completed is exit code 1, told on stderr, with nothing on stdout', async () => {
    const place = project({ 'a.yaml': RECIPE })
    await serveModel(place, (one) => one.on({}, { error: { message: 'no such model' }, status: 404 }))

    const { code, stdout, stderr } = await place.run(['run', 'a.yaml', '-p', 'topic=x'])

    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/a \w{8} failed after .*: /)
  })

  test('without any model it is refused before anything is recorded, with what to set', async () => {
    const place = project({ 'a.yaml': RECIPE })
    Object.assign(place.more, { OPENAI_API_KEY: '', ANTHROPIC_API_KEY: '', OLLAMA_HOST: 'http://127.0.0.1:1' })

    const { code, stderr } = await place.run(['run', 'a.yaml', '-p', 'topic=x'])

    expect(code).toBe(2)
    expect(stderr).toMatch(/^legate: .*Set LEGATE_MODEL/)
  })

  // Where the model comes from is found by the same code for both commands.
  test.each([
    ['--model', ['run', '--model', 'openai/gpt-5'], '', {}],
    ['LEGATE_MODEL', ['chat'], '', { LEGATE_MODEL: 'openai/gpt-5' }],
    ['the file', ['run'], 'settings: {goose_provider: openai, goose_model: gpt-5}\n', {}],
  ])(
    'a model that %s names and that has no key is refused before anything is recorded',
    async (_, [command = '', ...more], settings, env) => {
      const place = project({ 'a.yaml': `${RECIPE}${settings}` })
      Object.assign(place.more, { OPENAI_API_KEY: '', ...env })

      const { code, stdout, stderr } = await place.run([command, 'a.yaml', '-p', 'topic=x', ...more], { input: 'Hi\n' })

      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toMatch(/^legate: openai\/gpt-5 needs a key\. Set OPENAI_API_KEY, /)
      expect(existsSync(place.store)).toBe(false)
    },
  )
})

describe('legate run, in a terminal', () => {
  test('asks for what is missing, shows the tree, and prints the answer below it', async () => {
    const place = project({ 'a.yaml': RECIPE })
    const mock = await serveModel(place, (one) => one.on({}, { content: 'It is **fast**.\nVery.' }))
    const terminal = new Terminal(place, ['run', 'a.yaml'], { cols: 80, rows: 24 })

    await terminal.shows('topic, what to explain:')
    terminal.type('QUIC\r')

    expect(await terminal.ended).toBe(0)
    expect(terminal.screen.all).toMatch(/✓ a +completed: It is \*\*fast\*\*\. Very\./)
    expect(terminal.screen.all).toMatch(/\n\nIt is \*\*fast\*\*\.\nVery\.$/)
    expect(terminal.screen.isCursorVisible).toBe(true)
    expect(JSON.stringify(mock.getLastRequest()?.body)).toContain('Explain QUIC to a child.')
  })

  test('shows the answer below the tree while it comes, and prints it once', async () => {
    const lines = Array.from({ length: 30 }, (_, n) => `Line ${n} of the answer.`)
    const place = project({ 'a.yaml': RECIPE })
    const streaming = { latency: 50, chunkSize: 20 }
    await serveModel(place, (one) => one.on({}, { content: lines.join('\n') }, streaming))
    const terminal = new Terminal(place, ['run', 'a.yaml', '-p', 'topic=QUIC'], { cols: 80, rows: 24 })

    await terminal.shows((screen) => /● a .*\n\n(Line \d+ of the answer\.\n){3,}[^\n]*\n?1 agent · /.test(screen))

    expect(await terminal.ended).toBe(0)
    expect(terminal.screen.all.split('Line 29 of').length).toBe(2)
    expect(terminal.screen.all).toMatch(/✓ a +completed: [^\n]*\n1 agent · [^\n]*\n\nLine 0 of the answer\.\nLine 1 /)
  })

  test('asks an agent file without a prompt what it shall do; Ctrl-C there leaves nothing behind', async () => {
    const place = project({ 'reviewer.md': AGENT })
    await serveModel(place, (one) => one.on({}, { content: 'Fine.' }))
    const asked = new Terminal(place, ['run', 'reviewer.md'], { cols: 80, rows: 24 })
    await asked.shows('What should reviewer do?')
    asked.type('Look.\r')
    expect(await asked.ended).toBe(0)
    expect(asked.screen.all).toContain('\nFine.')

    const left = new Terminal(place, ['run', 'reviewer.md'], { cols: 80, rows: 24 })
    await left.shows('What should reviewer do?')
    left.type('\u0003')
    expect(await left.ended).toBe(130)
  })
})

describe('legate explain', () => {
  test('where a value is missing, it says what the file is and takes, and opens no file', async () => {
    const parameters = [
      '{key: topic, input_type: string, requirement: required, description: about what}',
      '{key: notes, input_type: file, requirement: user_prompt, description: a file}',
      '{key: tone, input_type: select, requirement: optional, default: dry, options: [dry, warm], description: how}',
    ]
    const text = `title: Talk\ndescription: Talks.\nprompt: "{{ topic }} {{ notes }} {{ tone }}"\nparameters:\n${parameters.map((one) => `  - ${one}\n`).join('')}`
    const { code, stdout, stderr } = await project({ 'a.yaml': text }).run([
      'explain',
      'a.yaml',
      '-p',
      'notes=/no/such',
    ])

    expect(code).toBe(2)
    expect(stdout.split('\n').slice(0, 7)).toEqual([
      'Talk',
      '  Talks.',
      '',
      'Parameters',
      '  topic            string, required: about what',
      '  notes            file, user_prompt: a file',
      '  tone             select of dry | warm, optional, else "dry": how',
    ])
    expect(stderr).toContain('these parameters have no value: topic (about what). Give --param topic=VALUE.')
  })

  test('shows what the model is told, its tools, grant, limits and cost bound, and calls none', async () => {
    const place = project({ 'a.yaml': RECIPE })
    const mock = await serveModel(place, (one) => one.on({}, { content: 'never' }))

    const { code, stdout } = await place.run(['explain', 'a.yaml', '-p', 'topic=QUIC'])

    expect(code).toBe(0)
    expect(stdout).toMatch(/^a\n {2}file +a\.yaml \(recipe\)\n {2}model +openai\/gpt-5, named by LEGATE_MODEL\n/)
    expect(stdout).toMatch(/\n {2}limits +modelCalls 1000, toolCalls \d+, /)
    expect(stdout).toMatch(/\n {2}cost +at most \$4000\.00: 1000 calls that each fill 400000 tokens/)
    expect(stdout).toMatch(
      /\n {2}ask +file\.write:\/workspace\/\*\* file\.delete:\/workspace\/\*\* exec:\* net:\* secret:\* tool:memory_remember tool:memory_forget\n/,
    )
    expect(stdout).toMatch(/\nSystem prompt\n {2}You explain\.\n/)
    expect(stdout).toMatch(/\nFirst message\n {2}Explain QUIC to a child\.\n$/)
    expect(mock.getRequests()).toEqual([])
  })

  test('what a recipe narrows is shown, and every command warns of a restriction that is misspelt or of another dialect', async () => {
    const text = `${RECIPE}grnat: {deny: ["exec:*"]}\nbudget: {modelCalls: 3}\ndisallowedTools: Read\n`
    const place = project({ 'a.yaml': text })
    await serveModel(place, (one) => one.on({}, { content: 'Fine.' }))
    const values = ['-p', 'topic=QUIC']

    const explained = await place.run(['explain', 'a.yaml', ...values])
    const ran = await place.run(['run', 'a.yaml', ...values])
    const validated = await place.run(['validate', 'a.yaml'])
    const listed = await place.run(['doctor'])

    expect(explained.stdout).toMatch(/\nGrant of the file, which narrows it\n {2}deny +exec:\*\n/)
    expect(explained.stdout).toMatch(/\n {2}limits +modelCalls 3, /)
    for (const told of [explained.stderr, ran.stderr, validated.stdout, listed.stdout]) {
      expect(told).toContain('warning: `grnat` is read as `grant`')
      expect(told).toContain('warning: unknown key `disallowedTools`. It restricts nothing.')
    }
  })

  test('secrets that stand in a file are warned about and never shown', async () => {
    const servers = [
      '  - {type: stdio, name: alpha, cmd: alpha-server, args: [beta, --token, s3cr3t], envs: {API_TOKEN: e53cr3t, MODE: fast}}',
      '  - {type: streamable_http, name: gamma, uri: "https://host.example/mcp?api_key=u53cr3t", headers: {Authorization: Bearer h53cr3t}}',
      `  - {type: streamable_http, name: delta, uri: "https://host.example/mcp", env_keys: [KEY], headers: {Authorization: "Bearer \${KEY}"}}`,
    ]
    const place = project({ 'a.yaml': `${RECIPE}extensions:\n${servers.join('\n')}\n` })
    await serveModel(place, (one) => one.on({}, { content: 'never' }))

    const text = await place.run(['explain', 'a.yaml', '-p', 'topic=QUIC'])
    const json = await place.run(['explain', 'a.yaml', '-p', 'topic=QUIC', '--json'])
    const validated = await place.run(['validate', 'a.yaml'])

    for (const { stdout, stderr } of [text, json, validated]) expect(stdout + stderr).not.toMatch(/cr3t/)
    expect(text.stdout).toContain('alpha: starts alpha-server beta --token ***')
    expect(text.stdout).toContain('gamma: reaches https://host.example/mcp?api_key=***')
    expect(JSON.parse(json.stdout)).toMatchObject({
      extensions: [{ envs: { API_TOKEN: '***', MODE: 'fast' } }, { headers: { Authorization: '***' } }, {}],
    })
    const told = validated.stdout.split('\n').filter((line) => line.includes('a secret stands in'))
    expect(told.map((line) => /extensions\[\d\].*`\w+`(?=: the store)/.exec(line)?.[0])).toEqual([
      'extensions[0]: a secret stands in its `args`',
      'extensions[0]: a secret stands in its `envs`',
      'extensions[1]: a secret stands in its `uri`',
      'extensions[1]: a secret stands in its `headers`',
    ])
  })

  test('an agent file needs no question to be explained; what it narrows is shown', async () => {
    const place = project({ 'r.md': AGENT.replace('description', 'permissionMode: plan\ndescription') })
    await serveModel(place, (one) => one.on({}, { content: 'never' }))

    const { code, stdout } = await place.run(['explain', 'r.md'])

    expect(code).toBe(0)
    expect(stdout).toMatch(
      /\nGrant of the file, which narrows it\n {2}deny +exec:\* file\.delete:\*\* file\.write:\*\*\n/,
    )
    expect(stdout).toContain('\nSystem prompt\n  You review.\n')
  })
})

describe('legate init', () => {
  test('writes a recipe that is sound, runs, and gives the model no tools but to delegate; what is there is left as it is', async () => {
    const place = project({})
    const mock = await serveModel(place, (one) => one.on({}, { content: 'It is fast.' }))

    const made = await place.run(['init'])
    const again = await place.run(['init'])
    const { agent, notices } = await validateDefinition(path.join(place.folder, 'recipe.yaml'))
    const ran = await place.run(['run', 'recipe.yaml', '--param', 'topic=HTTP/3'])

    expect(made).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('legate run recipe.yaml --param topic="HTTP/3"'),
    })
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('recipe.yaml already exists') })
    expect(agent).toMatchObject({ dialect: 'recipe', name: 'recipe' })
    expect(notices.filter(({ level }) => level !== 'note')).toEqual([])
    expect(ran).toMatchObject({ code: 0, stdout: 'It is fast.\n' })
    expect(JSON.stringify(mock.getLastRequest()?.body)).toContain('Explain HTTP/3 to a beginner')
    const { tools = [] } = (mock.getLastRequest()?.body ?? {}) as { tools?: readonly unknown[] }
    expect(tools).toHaveLength(1)
    expect(JSON.stringify(tools)).toContain('"subagent"')
  })

  test.each([
    [['init', 'notes.txt'], /is not a name for a recipe: it must end in \.yaml/],
    [['init', 'no/such/folder/a.yaml'], /The folder of no\/such\/folder\/a\.yaml does not exist/],
  ])('%j is refused', async (args, message) => {
    const { code, stderr } = await project({}).run(args)

    expect(code).toBe(2)
    expect(stderr).toMatch(message)
  })
})
