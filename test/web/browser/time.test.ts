import { emptyTree, reduceTree, treeOf } from 'legate/client'
import type { Page } from 'playwright-core'
import { beforeEach, expect, test } from 'vitest'
import type { RunEvent } from '../../../src/core/graph/event.ts'
import { Place } from '../../cli/support/cli.ts'
import { skipWithoutBrowser, useBrowser, visitor } from '../support/browser.ts'
import { at, type EventRow, eventsOf, get, inspector, start, travel } from '../support/inspector.ts'

useBrowser()
beforeEach(skipWithoutBrowser)

interface Tree {
  readonly agent: string
  readonly state: string
  readonly startedAt: number | null
  readonly children: readonly Tree[]
}

function namesOf(run: Tree): string[] {
  return [run.agent, ...run.children.filter(({ startedAt }) => startedAt !== null).flatMap(namesOf)]
}

/** The agents that had begun after the first `seq` events. */
function agentsAt(events: readonly EventRow[], rootId: string, seq: number): string[] {
  const cut = events.slice(0, seq).map(({ body, ...place }) => ({ ...place, ...body }) as unknown as RunEvent)
  const run = treeOf(cut.reduce(reduceTree, emptyTree()), rootId)?.runs.at(-1)
  return run === undefined ? [] : namesOf(run as unknown as Tree)
}

function shownAgents(page: Page): Promise<string[]> {
  return page.locator('.tl .names a .cut').allTextContents()
}

test('the slider at n shows the tree as its events cut at n say, and runs nothing', async () => {
  const place = new Place()
  const server = await inspector(place)
  const run = await start(server, 'lead')
  const ann = await visitor()
  const page = await ann.open(at(server, `/c/${run.conversationId}/time`))
  await page.locator('.tl .names').getByText('canary').waitFor()
  await page.getByText('deploy needs a yes').first().waitFor()
  const events = await eventsOf(server, run.conversationId)

  for (const seq of [2, 10, 25, 40, 60, events.length - 1]) {
    await travel(page, seq)
    await page.locator(`.log li.now[data-seq="${seq}"]`).waitFor()
    await expect.poll(() => shownAgents(page)).toEqual(agentsAt(events, run.conversationId, seq))
    await page.getByText(`Event ${seq} of`).waitFor()
  }
  expect((await eventsOf(server, run.conversationId)).length).toBe(events.length)
  await expect.poll(() => new URL(page.url()).searchParams.get('seq')).toBe(String(events.length - 1))
  await page.getByRole('button', { name: 'Live', exact: true }).click()
  await expect.poll(() => shownAgents(page)).toHaveLength(8)
})

test('the widths of the flame graph add up to what the run used', async () => {
  const place = new Place()
  place.open()
  const server = await inspector(place)
  const run = await start(server, 'counter')
  const timeline = `/v1/runs/${run.runId}/timeline`
  await get(server, `/v1/runs/${run.runId}/result?wait=30`)
  const { usage, usd } = await get<{ usage: Record<string, number>; usd: number }>(server, timeline)
  const ann = await visitor()
  const page = await ann.open(at(server, `/c/${run.conversationId}/time`))

  await page.getByRole('button', { name: 'Tokens' }).click()
  await page.locator('.flame a').first().waitFor()
  const used = (usage['inputTokens'] ?? 0) + (usage['outputTokens'] ?? 0)
  expect(Number(await page.locator('.flame').getAttribute('data-total'))).toBe(used)
  const boxes = await page.locator('.flame a').evaluateAll((all) =>
    all.map((one) => ({
      depth: Number(one.dataset['depth']),
      value: Number(one.dataset['value']),
      width: one.querySelector('rect')?.getBoundingClientRect().width ?? 0,
    })),
  )
  const [top, ...rest] = boxes
  const below = rest.filter(({ depth }) => depth === 1)
  expect(below.reduce((sum, { value }) => sum + value, 0)).toBe(used)
  expect(below.reduce((sum, { width }) => sum + width, 0)).toBeCloseTo(top?.width ?? 0, 0)

  await page.getByRole('button', { name: 'Dollars' }).click()
  const spent = async () => Number(await page.locator('.flame').getAttribute('data-total'))
  await expect.poll(spent).toBeCloseTo(usd, 6)
})
