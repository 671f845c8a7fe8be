import type { Page } from 'playwright-core'
import { beforeEach, expect, test } from 'vitest'
import { Place } from '../../cli/support/cli.ts'
import { skipWithoutBrowser, useBrowser, visitor } from '../support/browser.ts'
import { at, get, inspector, readyToAllow, start } from '../support/inspector.ts'

useBrowser()
beforeEach(skipWithoutBrowser)

/** What the list of agents says of each of them: its name and its dollars. */
function agentsOf(page: Page): Promise<string[]> {
  return page.getByRole('complementary', { name: 'Who works for whom' }).locator('.tree a').allInnerTexts()
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message to careful' }).fill(text)
  await page.keyboard.press('Enter')
}

test('a message that is queued changes neither the head, nor the agents, nor their dollars', async () => {
  const place = new Place()
  const server = await inspector(place)
  const run = await start(server, 'careful')
  const ann = await visitor()
  const page = await ann.open(at(server, `/c/${run.conversationId}`))
  await expect.poll(() => agentsOf(page)).toHaveLength(3)
  await expect.poll(async () => (await agentsOf(page)).every((line) => line.includes('$'))).toBe(true)

  await say(page, 'And then?')
  await page.locator('.run-t').getByText('1 queued').waitFor()
  await page.locator('.run-t').getByText('Needs you').waitFor()
  await page.locator('.facts').getByText('3 agents').waitFor()
  // The page asks for dollars again a moment after the tree has changed.
  await page.waitForTimeout(2_000)
  expect(await agentsOf(page)).toEqual([1, 2, 3].map(() => expect.stringContaining('$')))
  const facts = page.locator('.pane .kv')
  expect(await facts.innerText()).toContain(run.runId)

  await (await readyToAllow(page)).click()
  await page.getByRole('listitem', { name: 'Turn 2' }).getByText('It is done.').first().waitFor()
  await page.waitForTimeout(2_000)
  expect(await page.locator('.facts').innerText()).toContain('$')
  expect(await page.getByRole('listitem', { name: 'Turn 1' }).locator('.task .said').first().innerText()).toBe('Moved.')
  expect((await get<{ runs: unknown[] }>(server, `/v1/conversations/${run.conversationId}/tree`)).runs).toHaveLength(2)
})

test('on a phone, a menu copies the link and exports the run', async () => {
  const place = new Place()
  const server = await inspector(place)
  const run = await start(server, 'careful')
  const ann = await visitor({ viewport: { width: 390, height: 844 } })
  const page = await ann.open(at(server, `/c/${run.conversationId}`))

  await page.getByRole('button', { name: 'More about this run' }).click()
  await page.getByRole('menuitem', { name: 'Copy link' }).waitFor()
  const saved = page.waitForEvent('download')
  await page.getByRole('menuitem', { name: 'Export' }).click()
  expect((await saved).suggestedFilename()).toMatch(/^run-.*\.jsonl$/)
})
