import { beforeEach, describe, expect, test } from 'vitest'
import { PROMPTLY_MS } from '../support/pace.ts'
import { agentsModule, Place, skipUnlessBuilt, until } from './support/cli.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

const ESC = '\u001b'
const BEGIN = `${ESC}[?2026h`
const END = `${ESC}[?2026l`

describe('the live tree in a terminal', () => {
  test.each([
    { cols: 80, rows: 24 },
    { cols: 200, rows: 50 },
  ])('shows every agent and what it does at $cols x $rows, and leaves a summary behind', async (size) => {
    const place = new Place()
    place.more['LEGATE_TEST_MODEL'] = 'openai/gpt-5'
    await place.orphans('lead')

    const terminal = new Terminal(place, ['resume', '-m', agentsModule], size)
    await terminal.shows((screen) => /◌ lead +waiting for 2 × scout/.test(screen) && screen.includes('● scout'))
    const during = terminal.screen.text
    const hidden = terminal.screen.isCursorVisible
    place.open()

    expect(await terminal.ended).toBe(0)
    expect(during).toMatch(/├─ ● scout: topic 0 +look \{"where":"the sky".* 1\.2k tok +\$0\.00\d+ +\d+\.\d s/)
    expect(during).toMatch(/^3 agents · 3\.7k tokens · .* · Ctrl-C stops$/m)
    expect(widest(during)).toBeLessThan(size.cols)
    expect([hidden, terminal.screen.isCursorVisible]).toEqual([false, true])
    expect(terminal.screen.text).toMatch(/✓ lead +completed: All of them saw.*\n├─ ✓ scout: topic 0 +completed: I saw/)
    expect(terminal.screen.text).toMatch(/lead \w{8} completed after .*, 2 subagents\n\n {2}All of them saw it: 2\.$/)
    expect(terminal.screen.unknown).toEqual([])
  })

  test('survives a terminal that becomes narrower, wider and lower, and stays one tree', async () => {
    const place = new Place()
    await place.orphans('lead')
    const terminal = new Terminal(place, ['resume', '-m', agentsModule], { cols: 120, rows: 30 })
    await terminal.shows('Ctrl-C stops')

    for (const [cols, rows] of [
      [60, 24],
      [34, 12],
      [160, 40],
    ] as const) {
      await terminal.frame()
      terminal.resize(cols, rows)
      await terminal.frame()
      await terminal.shows((screen) => screen.split('lead').length === 2 && screen.split('● scout').length === 3)
      expect(widest(terminal.screen.text)).toBeLessThan(cols)
      expect(terminal.screen.all.split('agents ·').length).toBe(2)
    }
    place.open()

    expect(await terminal.ended).toBe(0)
    expect(terminal.screen.all.split('✓ lead').length).toBe(2)
  })

  // Forty subagents, their worker and the terminal share what a busy machine has left.
  test('folds what has ended, and what there is no room for, when there are more agents than rows; has no colours with NO_COLOR', {
    timeout: 90_000,
  }, async () => {
    const place = new Place()
    const env = { LEGATE_TEST_CHILDREN: '40' }
    const { ids } = await place.startRuns(['lead'], env)
    const terminal = new Terminal(place, ['tree', '-f', ids[0] ?? ''], {
      cols: 80,
      rows: 12,
      env: { NO_COLOR: '1' },
    })

    await terminal.shows('more lines')

    expect(terminal.screen.text).toMatch(/… and \d+ more lines/)
    expect(terminal.screen.lineCount).toBeLessThanOrEqual(11)
    place.open()
    expect(await terminal.ended).toBe(0)
    expect(terminal.screen.all.split('✓ scout').length).toBe(41)
    for (const code of [1, 2, 31, 32, 36, 39]) expect(terminal.written).not.toContain(`${ESC}[${code}m`)
  })

  test('is written in whole frames, at most twelve a second; Ctrl-C leaves a run of another process alone, and gives the cursor back', async () => {
    const place = new Place()
    const { ids, worker } = await place.startRuns(['lead'])
    const terminal = new Terminal(place, ['tree', '-f', ids[0] ?? ''], { cols: 100, rows: 30 })
    await terminal.shows((screen) => screen.split('● scout').length === 3)
    const [from, start] = [terminal.written.length, performance.now()]
    const framesSince = () => terminal.written.slice(from).split(BEGIN).slice(1)

    await until('some frames', () => performance.now() - start > 600 && framesSince().length > 2)

    const frames = framesSince()
    // One may have been on its way before.
    expect(frames.length).toBeLessThanOrEqual(1 + ((performance.now() - start) * 12) / 1_000)
    for (const frame of frames.slice(0, -1)) expect(frame.endsWith(END)).toBe(true)
    await terminal.shows('Ctrl-C leaves it running')

    terminal.type('\u0003')

    expect(await terminal.ended).toBe(130)
    expect(terminal.screen.isCursorVisible).toBe(true)
    place.open()
    await worker.says('over')
  })

  test('the footer of tree -f shows how long the run has taken, not how long it was watched', async () => {
    const place = new Place()
    const { ids } = await place.startRuns(['lead'])
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    const terminal = new Terminal(place, ['tree', '-f', ids[0] ?? ''], { cols: 100, rows: 30 })
    await terminal.shows('Ctrl-C leaves it running')
    const [, seconds = ''] = / tokens · ([\d.]+) s · Ctrl-C leaves/.exec(terminal.screen.text) ?? []

    expect(Number(seconds)).toBeGreaterThanOrEqual(2.5)
    place.open()
    expect(await terminal.ended).toBe(0)
  })

  test('shows what tools print above it, and nothing that a model says can move the cursor', async () => {
    const place = new Place()
    await place.orphans('lead', 'talker')
    const env = { LEGATE_TEST_PRINTS: '1' }
    const terminal = new Terminal(place, ['resume', '-m', agentsModule], { cols: 80, rows: 24, env })

    await terminal.shows((screen) => /● talker +says: .*u009b5n /.test(screen))
    place.open()
    expect(await terminal.ended).toBe(0)

    expect(terminal.screen.all.split('the tool prints this').length).toBe(3)
    expect(terminal.screen.all.indexOf('the tool prints')).toBeLessThan(terminal.screen.all.indexOf('✓ lead'))
    expect(terminal.screen.all).toContain('日本語 e\u0301nd.')
    for (const code of ['\u009b', `${ESC}[2J`, `${ESC}]`]) expect(terminal.written).not.toContain(code)
    expect(terminal.screen.unknown).toEqual([])
  })

  test('Ctrl-C once stops what a worker drives and keeps what there is; the run can be taken up again', async () => {
    const place = new Place()
    const [id = ''] = await place.orphans('lead')
    const terminal = new Terminal(place, ['resume', '-m', agentsModule], { cols: 80, rows: 24 })
    await terminal.shows((screen) => screen.split('● scout').length === 3)

    terminal.type('\u0003')

    expect(await terminal.ended).toBe(130)
    expect(terminal.screen.all).toContain('Stopping. Finished work is kept. Press Ctrl-C again to end at once.')
    expect(terminal.screen.text).toMatch(/✗ lead +cancelled/)
    expect(terminal.screen.isCursorVisible).toBe(true)
    const again = await place.run(['resume', id, '-m', agentsModule])
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('I went on after 1 question.') })
  })

  test('Ctrl-C twice ends at once, with the cursor back', async () => {
    const place = new Place()
    await place.orphans('lead')
    // A tool that does not hear its signal would be waited for.
    const env = { LEGATE_TEST_DEAF: '1' }
    const terminal = new Terminal(place, ['resume', '-m', agentsModule], { cols: 80, rows: 24, env })
    await terminal.shows((screen) => screen.split('● scout').length === 3)

    terminal.type('\u0003')
    await terminal.shows('Press Ctrl-C again to end at once')
    const second = performance.now()
    terminal.type('\u0003')

    expect(await terminal.ended).toBe(130)
    expect(performance.now() - second).toBeLessThan(PROMPTLY_MS)
    expect(terminal.screen.isCursorVisible).toBe(true)
  })
})

function widest(text: string): number {
  return Math.max(...text.split('\n').map((line) => [...line].length))
}
