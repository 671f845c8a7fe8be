import { agent, createRuntime, tool } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import type { Page } from 'playwright-core'
import { beforeEach, expect, test } from 'vitest'
import { Place } from '../../cli/support/cli.ts'
import { served } from '../../cli/support/served.ts'
import { figure } from '../../crash/support/figure.ts'
import { skipWithoutBrowser, useBrowser, visitor } from '../support/browser.ts'
import { at, inspector, start } from '../support/inspector.ts'

useBrowser()
beforeEach(skipWithoutBrowser)

const isFull = process.env['LEGATE_FULL'] === '1'
/** Machines that run tests have other things to do: they get more time than a person would give them. */
const PATIENCE = isFull ? 1 : 4

/** A conversation of so many nodes: turns of 40 calls, each with an answer around it. */
async function longThread(place: Place, nodes: number): Promise<string> {
  const look = tool({
    description: 'Looks.',
    input: { type: 'object', additionalProperties: true },
    effect: 'pure',
    execute: () => 'A line that was found in a file, and some words around it.',
  })
  const calls = Array.from({ length: 40 }, (_, line) => ({ name: 'look', input: { file: 'src/index.ts', line } }))
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? 'I have looked at all of them, and found nothing that is new.'
      : { text: 'I look.', calls },
  )
  const reader = agent({ name: 'reader', instructions: 'Read.', tools: { look }, model, contextTurns: 1 })
  const runtime = createRuntime({ store: sqliteStore(place.store) })
  const first = runtime.run(reader, 'Read it.', { title: 'A long thread' })
  await first.result
  for (let made = 43; made < nodes; made += 43) {
    await runtime.run(reader, 'Once more.', { conversationId: first.conversationId }).result
  }
  await runtime.close()
  return first.conversationId
}

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  /** How long it took, and how much of that the thread had a processor, in microseconds. */
  readonly dur?: number
  readonly tdur?: number
}

interface LongestTask {
  /** Milliseconds on the clock, and milliseconds of a processor: other programs make the first one longer. */
  readonly wall: number
  readonly cpu: number
}

/** The longest that the page was busy in one go meanwhile. */
async function longestTask(page: Page, work: () => Promise<void>): Promise<LongestTask> {
  const browser = page.context().browser()
  if (browser === null) throw new Error('A page of these tests has a browser.')
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] })
  // It names the thread of this page: other pages are in the same record.
  await page.evaluate(() => console.timeStamp('here'))
  await work()
  const record = JSON.parse(String(await browser.stopTracing())) as { readonly traceEvents: readonly TraceEvent[] }
  const here = record.traceEvents.find(({ name }) => name === 'TimeStamp')
  const tasks = record.traceEvents.filter(
    ({ name, pid, tid }) => name.endsWith('RunTask') && pid === here?.pid && tid === here.tid,
  )
  expect(tasks.length).toBeGreaterThan(50)
  const longest = (of: (task: TraceEvent) => number | undefined) =>
    Math.max(...tasks.map((task) => of(task) ?? 0)) / 1_000
  return { wall: longest(({ dur }) => dur), cpu: longest(({ tdur }) => tdur) }
}

async function scrollFar(page: Page): Promise<void> {
  const column = page.getByRole('region', { name: 'Thread' })
  for (let step = 0; step < 40; step++) {
    await column.evaluate((place, by) => place.scrollBy(0, by), step % 10 === 9 ? -3_000 : 900)
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
  }
}

async function heapMegabytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  return usedSize / 1_000_000
}

test(
  'a thread of thousands of nodes is there at once, scrolls smoothly, and needs little memory',
  async () => {
    const nodes = isFull ? 10_000 : 2_000
    const place = new Place()
    const id = await longThread(place, nodes)
    const server = await served(place, ['--workers', '0'])
    const ann = await visitor()
    const page = await ann.open(server.url)
    await page.getByText('A long thread').first().waitFor()
    await page.goto(`${server.base}/c/${id}`)
    await page.locator('[data-node]').first().waitFor()
    const painted = await page.evaluate(
      () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.POSITIVE_INFINITY,
    )
    await expect.poll(() => page.locator('.facts').first().textContent()).toMatch(/tokens/)

    const longest = await longestTask(page, () => scrollFar(page))
    const heap = await heapMegabytes(page)
    figure(
      `thread of ${nodes} nodes`,
      `first paint ${painted.toFixed(0)} ms, longest task while scrolling ${longest.cpu.toFixed(0)} ms of a processor (${longest.wall.toFixed(0)} on the clock), heap ${heap.toFixed(0)} MB`,
    )

    expect(painted).toBeLessThan(1_500 * PATIENCE)
    expect(longest.cpu).toBeLessThanOrEqual(50 * PATIENCE)
    expect(heap).toBeLessThanOrEqual(200)
  },
  isFull ? 600_000 : 120_000,
)

test(
  'a host with many children that all speak leaves the page quick to answer',
  async () => {
    const children = isFull ? 1_000 : 100
    const place = new Place()
    place.more['LEGATE_TEST_CHILDREN'] = String(children)
    const server = await inspector(place, ['--workers', String(children + 20)])
    const ann = await visitor()
    const run = await start(server, 'choir')
    const page = await ann.open(at(server, `/c/${run.conversationId}`))
    await page
      .getByText(/\bvoice\b/)
      .first()
      .waitFor()
    await expect
      .poll(() => page.locator('.facts').first().textContent())
      .toContain(`${(children + 1).toLocaleString('en')} agents`)

    const delays = await typeSlowly(page)
    place.open()
    const p95 = delays.toSorted((a, b) => a - b)[Math.floor(delays.length * 0.95)] ?? 0
    figure(`${children} children that speak`, `input delay p95 ${p95.toFixed(0)} ms`)

    expect(delays.length).toBeGreaterThan(20)
    expect(p95).toBeLessThanOrEqual(100 * PATIENCE)
  },
  isFull ? 600_000 : 120_000,
)

/** Types into the composer, and gives for each key how long it took until the page had taken it. */
async function typeSlowly(page: Page): Promise<number[]> {
  const field = page.locator('.composer textarea').first()
  await field.focus()
  await page.evaluate(() => {
    const delays: number[] = []
    Object.assign(globalThis, { delays })
    addEventListener('keydown', ({ timeStamp }) => delays.push(performance.now() - timeStamp), { capture: true })
  })
  for (const letter of 'a few words to the choir, please') {
    await page.keyboard.press(letter === ' ' ? 'Space' : letter)
    await page.waitForTimeout(60)
  }
  return page.evaluate(() => (globalThis as unknown as { delays: number[] }).delays)
}
