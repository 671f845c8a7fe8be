import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { createRuntime } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { beforeEach, describe, expect, test } from 'vitest'
import { localStore } from '../support/rows.ts'
import { agentsModule, root, skipUnlessBuilt } from './support/cli.ts'
import { serveModel } from './support/model-server.ts'
import { project } from './support/project.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

const POET = '---\nname: poet\ndescription: Writes poems.\n---\n\nYou write poems.\n'
const TUTOR =
  'title: T\ndescription: D\ninstructions: You teach {{ topic }}.\nparameters:\n  - {key: topic, input_type: string, requirement: required, description: d}\n'
/** The last thing on the screen: ready for the next message. */
const READY = /\n> ?$/

describe('legate chat, in a pipe', () => {
  test('a file goes on where code of the same name was asked before, and the other way round', async () => {
    const place = project({ 'poet.md': POET })
    await serveModel(place, (one) => one.on({}, { content: 'By the file.' }))
    const code = path.join(place.folder, 'poet.mjs')
    const legate = path.join(root, 'dist/index.js')
    writeFileSync(
      code,
      `import { agent } from '${legate}'
export const poet = agent({ name: 'poet', reply: async () => 'By the code.' })
`,
    )
    const first = await place.run(['chat', 'poet.mjs'], { input: 'one\n' })
    const id = /--continue (\w{8})\n$/.exec(first.stderr)?.[1] ?? ''
    const second = await place.run(['chat', 'poet.md', '--continue', id], { input: 'two\n' })
    const third = await place.run(['chat', 'poet.mjs', '--continue', id], { input: 'three\n' })
    const fourth = await place.run(['chat', 'poet.md', '--continue', id], { input: 'four\n' })

    expect([first, second, third, fourth].map(({ stdout }) => stdout)).toEqual([
      'By the code.\n',
      'By the file.\n',
      'By the code.\n',
      'By the file.\n',
    ])
  })

  test('each line is a message; what goes wrong in one is told; the model knows what was said before, also when gone on with', async () => {
    const place = project({})
    const mock = await serveModel(place, (one) => {
      one.on({ userMessage: 'third' }, { content: 'Three.' })
      one.on({ userMessage: 'bad' }, { error: { message: 'broken' }, status: 400 })
      one.on({ userMessage: 'second' }, { content: 'Two.' })
      one.on({}, { content: 'One.' })
    })

    const { code, stdout, stderr } = await place.run(['chat'], { input: 'first\n\nbad\nsecond\n' })
    const [, again = ''] = /Continue with: legate (chat --continue \w{8})\n$/.exec(stderr) ?? []
    const more = await place.run(again.split(' '), { input: 'third\n' })

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'One.\nTwo.\n' })
    expect(stderr).toMatch(/assistant \w{8} failed after/)
    expect(more).toMatchObject({ code: 0, stdout: 'Three.\n' })
    const last = JSON.stringify(mock.getLastRequest()?.body)
    for (const text of ['first', 'One.', 'second', 'Two.', 'third']) expect(last).toContain(text)
    const store = localStore(place.runtime())
    expect(store.roots({ limit: 10 })).toHaveLength(1)
    // As GET /v1/runs does, ps lists the latest run of a conversation; --all lists every run.
    const [one, all] = await Promise.all([place.run(['ps', '-q']), place.run(['ps', '--all', '-q'])])
    expect(one.stdout.trim().split('\n')).toHaveLength(1)
    expect(all.stdout.trim().split('\n')).toHaveLength(4)
  })

  test('@name hands a message to the definition of that name, whatever the model would do', async () => {
    const place = project({ '.claude/agents/poet.md': POET })
    const mock = await serveModel(place, (one) => {
      one.on({ systemMessage: 'You write poems.', userMessage: 'more' }, { content: 'Violets are blue.' })
      one.on({ systemMessage: 'You write poems.' }, { content: 'Roses are red.' })
      one.on({ toolResultContains: 'Violets' }, { content: 'Then blue.' })
      one.on({ toolResultContains: 'Roses' }, { content: 'A poem on roses.' })
    })

    const { code, stdout } = await place.run(['chat'], { input: '@poet write a poem\n@poet more\n' })

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'A poem on roses.\nThen blue.\n' })
    const store = localStore(place.runtime())
    const [chat] = store.roots({ limit: 10 })
    const turns = store.turnsOf(chat?.id ?? '', { limit: 10 })
    const links = turns.flatMap(({ id }) => store.linksOf(id))
    expect(links.map(({ agentName }) => agentName)).toEqual(['poet', 'poet'])
    // Nobody was asked whether to delegate.
    expect(mock.getRequests()).toHaveLength(4)
  })

  test('a definition that was written meanwhile is found; one that is broken harms nothing', async () => {
    const place = project({ '.claude/agents/broken.md': '---\nname: [\n---\n' })
    await serveModel(place, (one) => {
      one.on({ systemMessage: 'You write poems.' }, { content: 'Roses are red.' })
      one.on({ toolResultContains: 'Roses' }, { content: 'Done.' })
      one.on({}, { content: 'Hello.' })
    })
    const before = await place.run(['chat'], { input: '@poet write\n' })
    writeFileSync(path.join(place.folder, '.claude/agents/poet.md'), POET)
    const after = await place.run(['chat'], { input: '@poet write\n' })

    expect([before.stdout, after.stdout]).toEqual(['', 'Done.\n'])
    expect(before.stderr).toContain('There is no "poet" here.')
  })

  test('with a file it is that agent; its parameters are asked for nowhere but in a terminal', async () => {
    const place = project({ 'tutor.yaml': TUTOR })
    const mock = await serveModel(place, (one) => one.on({}, { content: 'Listen.' }))

    const missing = await place.run(['chat', 'tutor.yaml'], { input: 'go on\n' })
    const given = await place.run(['chat', 'tutor.yaml', '-p', 'topic=Latin'], { input: 'go on\n' })

    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('Give --param topic=VALUE.') })
    expect(given).toMatchObject({ code: 0, stdout: 'Listen.\n' })
    expect(JSON.stringify(mock.getLastRequest()?.body)).toContain('You teach Latin.')
  })

  test('/help, commands that there are not, and @nobody are answered here, and no model is paid for them; /exit leaves', async () => {
    const place = project({
      '.claude/agents/poet.md': POET,
      'my chat.yaml': 'title: T\ndescription: D\ninstructions: I.\n',
    })
    const mock = await serveModel(place, (one) => one.on({}, { content: 'Hello.' }))
    const input = '/help\n/nothing now\n@nobody write\n@poet\n/exit\nnever\n'

    const local = await place.run(['chat'], { input })
    const asked = mock.getRequests().length
    const said = await place.run(['chat', 'my chat.yaml'], { input: ' /help me\n/etc/hosts is what?\n' })

    expect(local).toMatchObject({ code: 0, stdout: '' })
    expect(asked).toBe(0)
    expect(local.stderr).toMatch(/^\/help +this text$/m)
    expect(local.stderr).toContain('There is no /nothing.')
    expect(local.stderr).toContain('There is no "nobody" here. There are: @my chat, @poet.')
    expect(local.stderr).toContain('Say what poet should do: @poet TEXT')
    expect(said.stdout).toBe('Hello.\nHello.\n')
    expect(said.stderr).toMatch(/Continue with: legate chat 'my chat\.yaml' --continue \w{8}\n$/)
  })

  test('a long chat is summed up when the window of its model nears its end, and the transcript stays whole', async () => {
    const place = project({
      'legate/config.json': JSON.stringify({ prices: { 'openai/gpt-5': { contextWindow: 6_000 } } }),
    })
    const mock = await serveModel(place, (one) => {
      one.on({ userMessage: 'question' }, { content: 'word '.repeat(400) })
      one.on({}, { content: 'SUMMARY of what was said.' })
    })
    const questions = Array.from({ length: 12 }, (_, at) => `question ${at}\n`)

    const { code, stderr } = await place.run(['chat'], { input: questions.join('') })
    const runtime = place.runtime()
    const talk = await runtime.conversation(localStore(runtime).roots({ limit: 1 })[0]?.id ?? '')
    const { transcript } = await talk.transcriptPage({ limitTurns: 100 })

    expect(code).toBe(0)
    expect(JSON.stringify(mock.getLastRequest()?.body)).toContain('SUMMARY of what was said.')
    expect(JSON.stringify(mock.getLastRequest()?.body)).not.toContain('question 0')
    expect(transcript.filter(({ role }) => role === 'user').map(({ text }) => `${text}\n`)).toEqual(questions)
    expect(stderr).toMatch(/sums up/)
  })

  test.each([
    ['an id that there is not', ['chat', '--continue', 'ffffffff'], /No id here ends in "ffffffff"/],
    [
      'an id of a store that there is not',
      ['chat', '-c', 'ffffffff', '--store', 'no.db'],
      /There is no store at .*no\.db/,
    ],
    ['a file that there is not', ['chat', 'nope.yaml'], /^legate: nope\.yaml: cannot be read/],
  ])('refuses %s', async (_, args, message) => {
    const place = project({})
    await serveModel(place, (one) => one.on({}, { content: 'x' }))
    place.runtime()
    const { code, stderr } = await place.run(args, { input: 'x\n' })

    expect(code).toBe(args.includes('no.db') ? 1 : 2)
    expect(stderr).toMatch(message)
  })
})

describe('legate chat, in a terminal', () => {
  test('shows what is said, keeps what was typed, takes pasted lines as one message, and leaves at Ctrl-D', async () => {
    const place = project({})
    const mock = await serveModel(place, (one) => {
      one.on({ userMessage: 'pasted' }, { content: 'Both lines.' })
      one.on({}, { content: 'Hello.\nSecond line.' }, { chunkSize: 4 })
    })
    const terminal = new Terminal(place, ['chat'], { cols: 80, rows: 24 })
    await terminal.shows((screen) => READY.test(`\n${screen}`))
    terminal.type('hi\r')
    await terminal.shows((screen) => /\nHello\.\nSecond line\.\n1 agent .*\n\n> ?$/.test(screen))

    terminal.type('pasted one\rpasted two\r')
    await terminal.shows((screen) => /Both lines\.\n[^\n]*\n\n> ?$/.test(screen))
    const request = JSON.stringify(mock.getLastRequest()?.body)
    terminal.type('\u0004')

    expect(await terminal.ended).toBe(0)
    expect(request).toContain('pasted one\\npasted two')
    expect(terminal.screen.all).toMatch(/Continue with: legate chat --continue \w{8}$/)
    expect(terminal.screen.isCursorVisible).toBe(true)
  })

  test('loses nothing that is pasted: with marks or without, ended or not, and while an answer is on its way', async () => {
    const place = project({})
    const mock = await serveModel(place, (one) => {
      one.on({ userMessage: 'slow' }, { content: 'Slow.' }, { latency: 150 })
      one.on({ userMessage: 'alpha' }, { content: 'Greek.' })
      one.on({ userMessage: 'gamma' }, { content: 'More Greek.' })
      one.on({ userMessage: 'ahead' }, { content: 'Ahead.' })
    })
    const last = () => {
      const { messages } = (mock.getLastRequest()?.body ?? {}) as { messages?: { content: unknown }[] }
      return JSON.stringify(messages?.at(-1)?.content)
    }
    const terminal = new Terminal(place, ['chat'], { cols: 80, rows: 40 })
    await terminal.shows((screen) => READY.test(`\n${screen}`))

    terminal.type('\u001b[200~alpha\rbeta\u001b[201~')
    await terminal.shows((screen) => /> alpha\n +beta$/.test(screen))
    const before = mock.getRequests().length
    terminal.type(' too\r')
    await terminal.shows((screen) => /Greek\.\n[^\n]*\n\n> ?$/.test(screen))
    const marked = last()
    terminal.type('gamma\rdelta')
    await terminal.shows((screen) => /> gamma\n +delta$/.test(screen))
    terminal.type('\r')
    await terminal.shows((screen) => /More Greek\.\n[^\n]*\n\n> ?$/.test(screen))
    const unmarked = last()
    terminal.type('slow\r')
    await terminal.shows('thinking')
    terminal.type('ahead one\rahead two\r')
    await terminal.shows((screen) => /Ahead\.\n[^\n]*\n\n> ?$/.test(screen))

    expect(before).toBe(0)
    expect(marked).toContain('alpha\\nbeta too')
    expect(unmarked).toContain('gamma\\ndelta')
    expect(last()).toContain('ahead one\\nahead two')
    terminal.type('\u0004')
    expect(await terminal.ended).toBe(0)
    expect(terminal.screen.unknown).toEqual([])
  })

  test('--continue shows the last of what was said, and goes on after a run that failed', async () => {
    const place = project({})
    const lines = Array.from({ length: 9 }, (_, at) => `line ${at}`).join('\n')
    await serveModel(place, (one) => {
      one.on({ userMessage: 'broken' }, { error: { message: 'no' }, status: 400 })
      one.on({ userMessage: 'third' }, { content: 'Three.' })
      one.on({}, { content: lines })
    })
    const { stderr } = await place.run(['chat'], { input: 'older\nfirst\nbroken\n' })
    const [, again = ''] = /Continue with: legate (chat --continue \w{8})\n$/.exec(stderr) ?? []
    const terminal = new Terminal(place, again.split(' '), { cols: 80, rows: 40 })
    await terminal.shows((screen) => READY.test(`\n${screen}`))
    const shown = terminal.screen.text
    terminal.type('third\r')
    await terminal.shows((screen) => /Three\.\n[^\n]*\n\n> ?$/.test(screen))
    terminal.type('\u0004')

    expect(await terminal.ended).toBe(0)
    expect(shown).toMatch(
      /\nyou: first\nassistant: …\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nyou: broken\nassistant: Errored: .*\n> ?$/,
    )
    expect(shown).not.toContain('older')
  })

  test('--continue goes on after a run that was asked nothing, in a pipe and in a terminal', async () => {
    const place = project({ 'poet.md': POET })
    const mock = await serveModel(place, (one) => {
      one.on({ userMessage: 'second' }, { content: 'Two.' })
      one.on({ userMessage: 'third' }, { content: 'Three.' })
      one.on({}, { content: 'One.' })
    })
    const { stderr } = await place.run(['chat', 'poet.md'], { input: 'first\n' })
    const [, again = ''] = /Continue with: legate (chat poet\.md --continue \w{8})\n$/.exec(stderr) ?? []
    const runtime = createRuntime({ store: sqliteStore(place.store) })
    const [row] = localStore(runtime).roots({ limit: 1 })
    await (await runtime.conversation(row?.id ?? '')).observe('It rains.')
    const [last] = localStore(runtime)
      .turnsOf(row?.id ?? '', { limit: 9 })
      .toSorted((a, b) => b.ordinal - a.ordinal)
    expect(last).toMatchObject({ state: 'ended', input: null })
    await runtime.close()

    const more = await place.run(again.split(' '), { input: 'second\n' })
    const terminal = new Terminal(place, again.split(' '), { cols: 80, rows: 40 })
    await terminal.shows((screen) => READY.test(`\n${screen}`))
    const shown = terminal.screen.text
    terminal.type('third\r')
    await terminal.shows((screen) => /Three\.\n[^\n]*\n\n> ?$/.test(screen))
    terminal.type('\u0004')

    expect(await terminal.ended).toBe(0)
    expect(more).toMatchObject({ code: 0, stdout: 'Two.\n' })
    expect(shown).toMatch(/It rains\.\nyou: second\npoet: Two\.\n/)
    expect(JSON.stringify(mock.getLastRequest()?.body)).toContain('It rains.')
  })

  test('Ctrl-C stops the answer and not the chat; a second one leaves', async () => {
    const place = project({})
    await serveModel(place, (one) => {
      one.on({ userMessage: 'slow' }, { content: 'never' }, { latency: 60_000 })
      one.on({}, { content: 'Quick.' })
    })
    const terminal = new Terminal(place, ['chat'], { cols: 80, rows: 24 })
    await terminal.shows((screen) => READY.test(`\n${screen}`))
    terminal.type('slow\r')
    await terminal.shows('thinking')
    terminal.type('\u0003')
    await terminal.shows((screen) => /cancelled after[\s\S]*\n> ?$/.test(screen))

    terminal.type('quick\r')
    await terminal.shows((screen) => /Quick\.\n[^\n]*\n\n> ?$/.test(screen))
    terminal.type('\u0003')
    await terminal.shows('(Ctrl-C again leaves.)')
    terminal.type('\u0003')

    expect(await terminal.ended).toBe(0)
  })
})

describe('legate chat, where a run waits for an approval', () => {
  const WRITER = '---\nname: writer\ndescription: Writes.\ntools: Write\n---\n\nYou write files.\n'
  const WRITE = [{ id: 'c', name: 'write_file', arguments: '{"path":"out.txt","content":"made"}' }]

  /** A chat whose first message made a write that somebody must allow. */
  async function parked(args: readonly string[], input = 'write\n') {
    const place = project({ 'writer.md': WRITER })
    const mock = await serveModel(place, (one) => {
      one.on({ userMessage: 'second' }, { content: 'Two.' })
      one.on({ toolResultContains: 'out.txt' }, { content: 'Written.' })
      one.on({ userMessage: 'write' }, { toolCalls: WRITE })
    })
    const first = await place.run(['chat', ...args], { input })
    const [, approve = ''] = /legate (approve \w{8} --seen \w{64})/.exec(first.stderr) ?? []
    const [, next = ''] = /Then: legate (chat .*)\n/.exec(first.stderr) ?? []
    return { place, mock, first, approve: approve.split(' '), next: next.split(' ') }
  }

  test('in a pipe --continue waits with exit code 3, and after approve shows the answer', async () => {
    const { place, approve, next } = await parked(['writer.md'])
    const id = next.at(-1) ?? ''
    const waits = await place.run(['chat', '--continue', id], { input: 'second\n' })
    const approved = await place.run(approve)
    const more = await place.run(next, { input: 'second\n' })

    expect(waits).toMatchObject({ code: 3, stdout: '' })
    expect(waits.stderr).toMatch(/waits for a person:[\s\S]*Not sent: "second"\.\n/)
    expect(approved.code).toBe(0)
    expect(more).toMatchObject({ code: 0, stdout: 'Written.\nTwo.\n' })
  })

  test('lines after one that waits are named: they were not sent', async () => {
    const { first, mock } = await parked(['writer.md'], 'write\nsecond\n\nthird\n/exit\nnever\n')

    expect(first.code).toBe(3)
    expect(first.stderr).toContain('Not sent: "second", "third".\n')
    expect(mock.getRequests()).toHaveLength(1)
  })

  test('in a terminal --continue asks, and shows the answer before it takes a message', async () => {
    const { place, next } = await parked(['writer.md'])
    const terminal = new Terminal(place, next, { cols: 100, rows: 40 })
    await terminal.shows((screen) => /then Enter >$/m.test(screen))
    terminal.type('y\r')
    await terminal.shows((screen) => /Written\.\n[^\n]*\n\n> ?$/.test(screen))
    terminal.type('second\r')
    await terminal.shows((screen) => /Two\.\n[^\n]*\n\n> ?$/.test(screen))
    terminal.type('\u0004')

    expect(await terminal.ended).toBe(0)
  })

  test('an agent in code goes on too, with the command that is printed', async () => {
    const place = project({})
    const first = await place.run(['chat', agentsModule, '--agent', 'careful'], { input: 'look\n' })
    place.open()
    const [, approve = ''] = /legate (approve \w{8} --seen \w{64})/.exec(first.stderr) ?? []
    const [, next = ''] = /Then: legate (chat .*)\n/.exec(first.stderr) ?? []
    await place.run(approve.split(' '))

    expect(await place.run(next.split(' '), { input: '' })).toMatchObject({ code: 0, stdout: 'Done: It is blue.\n' })
  })
})

test('what a continued conversation and a forked lane were asked is shown, and ps lists the runs of lanes', async () => {
  const place = project({ 'poet.md': POET })
  await serveModel(place, (one) => one.on({}, { content: 'Lines.' }))
  const first = await place.run(['chat', 'poet.md'], { input: 'first\n' })
  const id = /--continue (\w{8})\n$/.exec(first.stderr)?.[1] ?? ''
  await place.run(['chat', '--continue', id], { input: 'more\n' })
  const [newest = ''] = (await place.run(['ps', '-q'])).stdout.split('\n')
  const forked = await place.run(['fork', newest])
  const lane = /--continue (\w{8})/.exec(forked.stdout)?.[1] ?? ''
  await place.run(['chat', '--continue', lane], { input: 'in the lane\n' })
  const [ps, all, shown, log] = await Promise.all([
    place.run(['ps']),
    place.run(['ps', '--all']),
    place.run(['show', newest]),
    place.run(['log', newest]),
  ])

  for (const [{ stdout }, asked] of [
    [ps, ['in the lane', 'more']],
    [all, ['in the lane', 'more', 'first']],
  ] as const) {
    expect(stdout.match(/poet .*/g)?.map((line) => line.replace(/^.*\s{2}/, ''))).toEqual(asked)
  }
  expect(shown.stdout).toMatch(/Input\n *more\n/)
  expect(log.stdout).toContain('input: more')
})
