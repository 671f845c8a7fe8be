import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { beforeEach, expect, test } from 'vitest'
import { Place } from '../../cli/support/cli.ts'
import { skipWithoutBrowser, useBrowser, visitor } from '../support/browser.ts'
import { again, at, eventsOf, get, inspector, start, travel } from '../support/inspector.ts'

useBrowser()
beforeEach(skipWithoutBrowser)

const GONE = [/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY_RESPONSE|Failed to fetch|network error/]

test('the page survives kill -9 of the server, comes back by itself, and misses nothing', async () => {
  const place = new Place()
  place.more['LEGATE_TEST_PACE'] = '600'
  place.more['LEGATE_TEST_MARKS'] = path.join(place.folder, 'marks')
  const first = await inspector(place)
  const ann = await visitor()
  ann.expects(...GONE)
  const run = await start(first, 'counter')
  const page = await ann.open(at(first, `/c/${run.conversationId}/time`))
  await expect.poll(() => lastSeq(page), { timeout: 20_000 }).toBeGreaterThan(15)

  first.process.kill('SIGKILL')
  await first.process.ended
  await page
    .getByText(/Reconnecting|not answer|cannot be reached/)
    .first()
    .waitFor()
  const before = await lastSeq(page)
  const second = await again(place, first)
  const ended = await get<{ outcome: { status: string } }>(second, `/v1/runs/${run.runId}/result?wait=30`)

  expect(ended.outcome.status).toBe('completed')
  const events = await eventsOf(second, run.conversationId)
  expect(events.length).toBeGreaterThan(before)
  await expect.poll(() => lastSeq(page), { timeout: 20_000 }).toBe(events.length)
  expect(await allSeqs(page, events.length)).toEqual(events.map(({ seq }) => seq))
  // Every effect happened, and none was lost; a call that was cut off in the middle may have happened twice.
  const marks = readFileSync(path.join(place.folder, 'marks'), 'utf8').trim().split('\n')
  expect(new Set(marks).size).toBe(12)
})

/** `Event 12 of 92`: how many the page has. */
async function lastSeq(page: Page): Promise<number> {
  const text =
    (await page
      .locator('.seq-t b')
      .textContent({ timeout: 5_000 })
      .catch(() => '')) ?? ''
  return Number(/of (\d+)/.exec(text)?.[1] ?? 0)
}

/** The numbers of all events in the log of the page, from the first to the last, window by window. */
async function allSeqs(page: Page, last: number): Promise<number[]> {
  const seen: number[] = []
  for (let seq = Math.min(14, last); ; seq = Math.min(seq + 14, last)) {
    await travel(page, seq)
    await page.locator(`.log li.now[data-seq="${seq}"]`).waitFor()
    const shown = await page.locator('.log li').evaluateAll((lines) => lines.map((line) => Number(line.dataset['seq'])))
    seen.push(...shown.filter((one) => one > (seen.at(-1) ?? 0)))
    if (seq === last) return seen
  }
}
