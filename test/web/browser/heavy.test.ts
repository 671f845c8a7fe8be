import { chmodSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import { beforeEach, expect, test } from 'vitest'
import { skipWithoutBrowser, useBrowser, visitor } from '../support/browser.ts'
import { Doer } from '../support/doer.ts'
import { at, get, start } from '../support/inspector.ts'

useBrowser()
beforeEach(skipWithoutBrowser)

const DEEP = `${'{"0":'.repeat(20_000)}1${'}'.repeat(20_000)}`
const MARKS = `a${'\u0301'.repeat(50_000)}`

/** How long the page takes to answer, once it shows the heading. */
async function busyMs(page: Page): Promise<number> {
  await page.getByRole('heading', { level: 1 }).first().waitFor()
  await page.waitForTimeout(1_000)
  return page.evaluate(async () => {
    const began = performance.now()
    await new Promise((resolve) => setTimeout(resolve, 0))
    document.body.getBoundingClientRect()
    return performance.now() - began
  })
}

test('JSON of 20,000 levels is shown in the inbox, in the thread and in an exported file', async () => {
  const doer = await Doer.serve()
  const input = JSON.stringify([{ calls: [{ name: 'echo', input: { out: DEEP } }] }, DEEP])
  const run = await start(doer.server, 'doer', { input: `Do ${input}` })
  const told = await start(doer.server, 'doer', { input: DEEP })
  for (const { runId } of [run, told]) await get(doer.server, `/v1/runs/${runId}/result?wait=30`)
  const ann = await visitor()
  const page = await ann.open(at(doer.server, '/'))

  await page.getByRole('heading', { name: 'Done' }).waitFor()
  expect(await page.locator('.sect .item').count()).toBeGreaterThanOrEqual(2)
  for (const { conversationId } of [run, told]) {
    for (const view of ['', '/graph', '/time']) {
      await page.goto(`${doer.server.base}/c/${conversationId}${view}`)
      expect(await busyMs(page)).toBeLessThan(1_000)
      if (view !== '') continue
      for (const row of await page.locator('.call .open[aria-expanded="false"]').all()) await row.click()
      expect(await page.locator('.entry').count()).toBeGreaterThanOrEqual(2)
      expect(await page.getByText('cannot be shown').count()).toBe(0)
    }
  }

  const file = path.join(doer.place.folder, 'run.html')
  writeFileSync(file, 'older')
  chmodSync(file, 0o644)
  expect(await doer.place.run(['export', told.runId, '--html', file])).toMatchObject({ code: 0 })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const bob = await visitor({ offline: true })
  const alone = await bob.open(pathToFileURL(file).href)
  await alone.locator('.entry .args').first().waitFor()
}, 90_000)

test('90,000 arguments, 50,000 marks on a letter and an answer of 5 MB do not hold the page', async () => {
  const doer = await Doer.serve()
  const many = Object.fromEntries(Array.from({ length: 90_000 }, (_, at) => [`k${at}`, at]))
  const runs = [
    await doer.deploys(many),
    await doer.deploys({ note: MARKS, [MARKS]: 1 }),
    await doer.run([MARKS]),
    await doer.run(['lorem ipsum '.repeat(400_000)]),
  ]
  const ann = await visitor()
  const page = await ann.open(at(doer.server, '/'))

  expect(await busyMs(page)).toBeLessThan(1_500)
  for (const { conversationId } of runs) {
    await page.goto(`${doer.server.base}/c/${conversationId}`)
    expect(await busyMs(page)).toBeLessThan(1_500)
    const more = page.getByRole('button', { name: /^Show all/ })
    while ((await more.count()) > 0) await more.first().click()
    expect(await busyMs(page)).toBeLessThan(1_500)
  }
}, 120_000)
