import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { localStore } from '../support/rows.ts'
import { agentsModule, Place, skipUnlessBuilt } from './support/cli.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

/** Longer than any one row, with its most important word at the end. */
const LONG = `${'path/'.repeat(60)}END`
const HEARD = /then Enter >$/m

const one = new Place(afterAll)
const two = new Place(afterAll)
const long = new Place(afterAll)
beforeAll(async () => {
  await Promise.all([one.parkedRuns('careful'), two.parkedRuns('careful', 'careful')])
  vi.stubEnv('LEGATE_TEST_WHERE', LONG)
  await long.parkedRuns('careful').finally(() => vi.unstubAllEnvs())
})

/** The digest that the list shows the first request with. */
async function seenBy(place: Place): Promise<string> {
  return /--seen (\w{64})/.exec((await place.run(['approvals'])).stdout)?.[1] ?? ''
}

/** The runs of that place, for one test alone, and with an open gate. */
function opened(made: Place): Place {
  const place = made.copy()
  place.open()
  return place
}

describe('approvals', () => {
  test('lists who asks, for what, by which rule, and how to answer', async () => {
    const place = opened(one)

    const { code, stdout } = await place.run(['approvals'])
    const json = await place.run(['approvals', '--json'])

    expect(code).toBe(0)
    expect(stdout).toMatch(/^\w{8} {2}careful\n {2}wants {2}look \{.*\}\n {2}rule {3}careful asks for tool:look/)
    expect(stdout).toMatch(
      /denied automatically in .*\n {2}legate approve \w{8} --seen [0-9a-f]{64} \[--edit JSON\] \[--always\]\n {2}legate deny \w{8} --seen [0-9a-f]{64} --reason TEXT/,
    )
    expect(JSON.parse(json.stdout)).toMatchObject({ path: ['careful'], request: 'tool:look', tool: 'look' })
    const [, id = ''] = /^(\w{8})/.exec(stdout) ?? []
    const answered = await place.run(['answer', id, 'yes'])
    expect(answered).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(`${id} waits for an approval: legate approvals ${id}`),
    })
    const shown = await place.run(['show'])
    expect(shown.stdout).toMatch(/legate approve \w{8} --seen [0-9a-f]{64}/)
  })

  test('shows all of the arguments, as resume and show do', async () => {
    const place = opened(long)
    const terminal = new Terminal(place, ['approvals'], { cols: 80, rows: 24 })
    const [approvals, resume] = await Promise.all([
      place.run(['approvals']),
      place.run(['resume', '-m', agentsModule]),
      terminal.ended,
    ])

    for (const { stdout } of [approvals, resume]) expect(stdout).toContain(`look {"where":"${LONG}"}`)
    const shown = terminal.screen.text
    expect(shown.replaceAll(/\n {9}/g, '')).toContain(`look {"where":"${LONG}"}`)
    // Nothing breaks a hash: who copies the command has all of it.
    expect(terminal.written).toMatch(/^ {2}legate approve \w{8} --seen \w{64} \[--edit JSON\] \[--always\]\r?$/m)
  })

  test('shows one of them by its id, which is where lists and logs without room for a request point', async () => {
    const place = opened(two)
    const all = await place.run(['approvals'])
    const [, id = ''] = /^(\w{8}) {2}careful/m.exec(all.stdout) ?? []
    const run = (await place.runtime().runs())[0]?.runId ?? ''

    const [shown, none, why, log] = await Promise.all([
      place.run(['approvals', id]),
      place.run(['approvals', 'ffffffff']),
      place.run(['why', run]),
      place.run(['log', run]),
    ])
    expect(shown.stdout.match(/^\w{8} {2}careful/gm)).toEqual([`${id}  careful`])
    expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('ffffffff does not wait for a person') })
    for (const { stdout } of [why, log]) {
      expect(stdout).toMatch(/legate approvals \w{8}/)
      expect(stdout).not.toContain('--seen')
    }
  })

  test('says so when there is nothing', async () => {
    const place = new Place()
    await place.endedRuns('talker')

    expect((await place.run(['approvals'])).stdout).toBe('Nothing waits for a person.\n')
  })

  test('approve --edit runs it with other arguments and shows them; what is not JSON is refused, and who answered already is told', async () => {
    const place = opened(one)
    const store = localStore(place.runtime())
    const [root] = store.roots({ limit: 1 })
    const [turn] = store.turnsOf(root?.id ?? '', { limit: 1 })
    const nodeId = store.openNodes(turn?.id ?? '').find(({ state }) => state === 'awaiting_approval')?.id ?? ''

    const seen = await seenBy(place)
    const approve = (...words: string[]) => place.run(['approve', nodeId.slice(-8), ...words], { env: { USER: 'ann' } })

    const unseen = await approve()
    const wrong = await approve('--seen', seen, '--edit', '{to')
    const right = await approve('--seen', seen, '--edit', '{"where":"the garden"}')
    const again = await place.run(['approve', nodeId.slice(-8)])

    expect(unseen).toMatchObject({ code: 2, stdout: '' })
    expect(unseen.stderr).toMatch(
      /^legate: Nothing was answered: the request must be seen first\. The current request:\n {2}look/,
    )
    expect(unseen.stderr).toContain(`legate approve ${nodeId.slice(-8)} --seen ${seen}`)
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('--edit needs JSON') })
    expect(right).toMatchObject({ code: 0, stdout: 'Allowed: look {"where":"the garden"}\n' })
    expect(again).toMatchObject({
      code: 1,
      stderr: `legate: The node ${nodeId} does not await approval: ann has allowed it already, with other arguments.\n`,
    })
    expect(store.node(nodeId)?.input.call?.input).toEqual({ where: 'the garden' })
  })
})

describe('a worker at a terminal', () => {
  test.each([
    ['y', 'Allowed tool:look.', 0],
    ['a', 'Allowed tool:look for this conversation.', 0],
    ['n', 'Denied tool:look.', 0],
  ])('asks inline and takes %s and Enter for an answer, nothing else', async (key, words, code) => {
    const place = opened(one)
    const terminal = new Terminal(place, ['resume', '-m', agentsModule], { cols: 80, rows: 24 })
    await terminal.shows((screen) => HEARD.test(screen))
    expect(terminal.screen.text).toMatch(/^careful wants look \{"where":"here"\}\. It needs your approval: /m)
    expect(terminal.screen.text).toMatch(/^Allow\? \[y\]es, \[a\]lways this exact request, \[n\]o, then Enter >$/m)

    terminal.type(`x${key}`)
    await terminal.shows(`then Enter > x${key}`)
    terminal.type('\r')
    await terminal.shows((screen) => HEARD.test(screen))
    expect(terminal.screen.text).toMatch(/^Not an answer\. Allow\? /m)
    terminal.type(key)
    await terminal.shows(`then Enter > ${key}`)
    terminal.type('\r')

    expect(await terminal.ended).toBe(code)
    expect(terminal.screen.all).toContain(words)
    expect(terminal.screen.all).not.toContain('Allow? [y]es')
    expect(terminal.screen.isCursorVisible).toBe(true)
  })

  // Typed within 400 ms after a question has appeared: a machine that is busier than that is no proof.
  test('what is typed before a question can be read answers nothing', { retry: 2 }, async () => {
    const place = opened(two)
    const terminal = new Terminal(place, ['resume', '-m', agentsModule], { cols: 80, rows: 24 })
    // In the line editor of the terminal before anything is asked, and right after the first answer.
    terminal.type('a\ra\r')
    await terminal.shows('Allow? [y]es')
    terminal.type('a\r')
    await terminal.shows((screen) => HEARD.test(screen))
    expect(terminal.screen.all).not.toContain('Allowed')
    terminal.type('n\ra\r')
    await terminal.shows('Denied tool:look.')
    terminal.type('o way\ra\r')
    await terminal.shows('Allow? [y]es')
    terminal.type('a\r')
    await terminal.shows((screen) => HEARD.test(screen))

    expect(terminal.screen.all).not.toContain('Allowed')
    terminal.type('y\r')
    expect(await terminal.ended).toBe(0)
    expect(terminal.screen.all).toContain('Allowed tool:look.')
  })

  test('shows a long question on as many rows as there are, says what is hidden, and always the keys', async () => {
    const place = opened(long)
    const terminal = new Terminal(place, ['resume', '-m', agentsModule], { cols: 80, rows: 24 })
    await terminal.shows('Allow? [y]es, [a]lways this exact request, [n]o, then Enter')
    expect(terminal.screen.text.replaceAll('\n', '')).toContain(`${LONG.slice(-70)}"}`)

    await terminal.frame()
    terminal.resize(44, 8)
    await terminal.shows((screen) => /^… \d+ more characters: legate approvals/m.test(screen))

    await terminal.shows((screen) => /^Allow\? \[y\]es,[\s\S]*\[n\]o, then\s+Enter/m.test(screen))
    expect(terminal.screen.lineCount).toBeLessThan(8)
    terminal.type('\u0003')
    expect(await terminal.ended).toBe(130)
  })

  test('asks nothing where nothing can be drawn, and exits with 3', async () => {
    const place = opened(one)
    const terminal = new Terminal(place, ['resume', '-m', agentsModule], { cols: 80, rows: 24, env: { TERM: 'dumb' } })

    expect(await terminal.ended).toBe(3)
    expect(terminal.screen.all).toMatch(/waits for a person:\n {2}look .*\n {4}legate approve \w{8}/)
  })
})
