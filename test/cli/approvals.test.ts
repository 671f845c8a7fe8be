import { beforeEach, describe, expect, test } from 'vitest'
import { agentsModule, Place, skipUnlessBuilt } from './support/cli.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

/** A run that waits for a person, in a store nobody works on. */
async function parked(): Promise<Place> {
  const place = new Place()
  const { worker, ids } = await place.startRuns(['careful'])
  const { store } = place.runtime()
  await worker.seen(() => store.openNodes(ids[0] ?? '').some(({ state }) => state === 'awaiting_approval'))
  worker.kill('SIGKILL')
  await worker.ended
  place.open()
  return place
}

describe('approvals', () => {
  test('lists who asks, for what, by which rule, and how to answer', async () => {
    const place = await parked()

    const { code, stdout } = await place.run(['approvals'])
    const json = await place.run(['approvals', '--json'])

    expect(code).toBe(0)
    expect(stdout).toMatch(/^\w{8} {2}careful\n {2}wants {2}look \{.*\}\n {2}rule {3}careful asks for tool:look/)
    expect(stdout).toMatch(
      /denied by itself in .*\n {2}legate approve \w{8} \[--edit JSON\] \[--always\], or legate deny/,
    )
    expect(JSON.parse(json.stdout)).toMatchObject({ path: ['careful'], request: 'tool:look', tool: 'look' })
  })

  test('says so when there is nothing', async () => {
    const place = new Place()
    await place.endedRuns('talker')

    expect((await place.run(['approvals'])).stdout).toBe('Nothing waits for a person.\n')
  })

  test('approve --edit runs it with other arguments; what is no JSON is refused', async () => {
    const place = await parked()
    const { stdout } = await place.run(['approvals', '--json'])
    const { nodeId } = JSON.parse(stdout) as { nodeId: string }

    const wrong = await place.run(['approve', nodeId.slice(-8), '--edit', '{to'])
    const right = await place.run(['approve', nodeId.slice(-8), '--edit', '{"where":"the garden"}'])

    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('--edit needs JSON') })
    expect(right).toMatchObject({ code: 0, stdout: expect.stringContaining('Allowed') })
    expect(place.runtime().store.node(nodeId)?.input.call?.input).toEqual({ where: 'the garden' })
  })
})

describe('a worker at a terminal', () => {
  test.each([
    ['y', 'Allowed tool:look.', 0],
    ['a', 'Allowed tool:look for this conversation.', 0],
    ['n', 'Denied tool:look.', 0],
  ])('asks inline and takes %s for an answer', async (key, words, code) => {
    const place = await parked()
    const terminal = new Terminal(place, ['resume', '-m', agentsModule], { cols: 120, rows: 24 })
    await terminal.shows('Allow? y yes')
    await terminal.shows('careful wants look')

    terminal.type('x')
    terminal.type(key)

    expect(await terminal.ended).toBe(code)
    expect(terminal.screen.all).toContain(words)
    expect(terminal.screen.all).not.toContain('Allow? y yes')
    expect(terminal.screen.isCursorVisible).toBe(true)
  })

  test('Ctrl-C at the question stops the run', async () => {
    const place = await parked()
    const terminal = new Terminal(place, ['resume', '-m', agentsModule], { cols: 120, rows: 24 })
    await terminal.shows('Allow? y yes')

    terminal.type('\u0003')

    expect(await terminal.ended).toBe(130)
  })
})
