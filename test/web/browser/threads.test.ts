import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { Place } from '../../cli/support/cli.ts'
import { ask } from '../../cli/support/served.ts'
import { skipWithoutBrowser, useBrowser, visitor } from '../support/browser.ts'
import { at, eventsOf, get, inspector, readyToAllow, start } from '../support/inspector.ts'

useBrowser()
beforeEach(skipWithoutBrowser)

/** The thread of a subagent, inside of its host's. */
function threadOf(page: Page, agent: string) {
  return page.getByRole('list', { name: `Thread of ${agent}` })
}

/** Opens the row of a subagent where it is folded. */
async function unfold(page: Page, agent: string): Promise<void> {
  const row = page.getByRole('button', { name: new RegExp(`\\b${agent}\\b`), expanded: false })
  await expect.poll(async () => (await row.count()) + (await threadOf(page, agent).count())).toBeGreaterThan(0)
  if ((await threadOf(page, agent).count()) === 0) await row.first().click()
  await threadOf(page, agent).waitFor()
}

test('a grandchild is read in the thread of its host while it speaks, has a link, and leads back up', async () => {
  const place = new Place()
  const server = await inspector(place)
  const ann = await visitor()
  const run = await start(server, 'teller')
  const page = await ann.open(at(server, `/c/${run.conversationId}`))

  await unfold(page, 'child')
  await unfold(page, 'grandchild')
  const words = threadOf(page, 'grandchild')
    .getByText(/word-\d+/)
    .first()
  await words.waitFor()
  const first = (await words.textContent()) ?? ''
  await expect.poll(async () => (await words.textContent())?.length ?? 0).toBeGreaterThan(first.length + 20)

  const node = threadOf(page, 'grandchild').locator('[data-node]').last()
  const id = await node.getAttribute('data-node')
  const bob = await visitor()
  const other = await bob.open(server.url)
  await other.goto(`${server.base}/c/${run.conversationId}#${id}`)
  await other.locator(`[data-node="${id}"]`).waitFor()

  await node.focus()
  await page.keyboard.press('u')
  const up = () => page.evaluate(() => document.activeElement?.closest('[data-node]')?.textContent ?? '')
  await expect.poll(up).toContain('grandchild')
  place.open()
  await threadOf(page, 'grandchild').getByText('and that is all.').waitFor()
  await page.getByText('They have spoken.').waitFor()
})

test('one approval two levels down, answered in two tabs at once: one wins, both say who', async () => {
  const place = new Place()
  const server = await inspector(place)
  const run = await start(server, 'careful')
  const [ann, bob] = [await visitor(), await visitor()]
  for (const one of [ann, bob]) one.expects(/status of 409/)
  const inbox = await ann.open(server.url)
  const thread = await bob.open(at(server, `/c/${run.conversationId}`))
  const buttons = [await readyToAllow(inbox), await readyToAllow(thread)]

  await Promise.all(buttons.map((button) => button.evaluate((one: HTMLElement) => one.click())))

  const ended = await get<{ outcome: { text: string } }>(server, `/v1/runs/${run.runId}/result?wait=30`)
  expect(ended.outcome.text).toBe('It is done.')
  await thread.getByText('It is done.').first().waitFor()
  await expect.poll(() => inbox.getByRole('button', { name: 'Allow once' }).count()).toBe(0)
  const words = (await eventsOf(server, run.conversationId)).filter(({ body }) => body.type === 'approval-answer')
  expect(words.map(({ body }) => [body['by'], body['allowed']])).toEqual([[expect.stringContaining('local'), true]])
  await thread
    .getByText(/allowed/i)
    .first()
    .waitFor()
})

test('a call that may have happened is settled where the page shows it, with its arguments', async () => {
  const place = new Place()
  const server = await inspector(place)
  const run = await start(server, 'payer')
  await expect.poll(async () => JSON.stringify(await eventsOf(server, run.conversationId))).toContain('"pay"')
  await ask(server, `/v1/runs/${run.runId}/cancel`, { method: 'POST', body: '{}' })
  await get(server, `/v1/runs/${run.runId}/result?wait=30`)
  const ann = await visitor()
  const inbox = await ann.open(server.url)
  const item = inbox.getByRole('listitem').filter({ hasText: 'may or may not have happened' })
  await item.getByText('"ann"').waitFor()
  await item.getByText('5', { exact: true }).waitFor()

  const thread = await ann.open(at(server, `/c/${run.conversationId}`))
  const note = thread.locator('.note-uncertain')
  await note.getByRole('button', { name: 'Leave it' }).click()
  await expect.poll(() => inbox.getByRole('button', { name: 'It happened' }).count()).toBe(0)
  const words = (await eventsOf(server, run.conversationId)).filter(({ body }) => body.type === 'call-settled')
  expect(words.map(({ body }) => body['how'])).toEqual(['left'])
})

describe('fork inside of a child', () => {
  test('runs its children again in a lane of its own, and leaves the original as it was', async () => {
    const place = new Place()
    place.open()
    const server = await inspector(place)
    const run = await start(server, 'teller')
    await get(server, `/v1/runs/${run.runId}/result?wait=30`)
    const before = await get<{ conversationId: string }>(server, `/v1/conversations/${run.conversationId}/tree`)
    const ann = await visitor()
    const page = await ann.open(at(server, `/c/${run.conversationId}`))
    await unfold(page, 'child')
    const node = threadOf(page, 'child').locator('.entry[data-node]').last()
    await node.waitFor()

    await node.focus()
    await page.keyboard.press('f')
    await page.getByRole('radio', { name: /Run them again/ }).check()
    await page.getByRole('textbox', { name: /Title/ }).fill('once more')
    await page.getByRole('button', { name: 'Make the lane' }).click()
    await expect.poll(() => new URL(page.url()).pathname).not.toBe(`/c/${run.conversationId}`)
    const laneId = new URL(page.url()).pathname.slice('/c/'.length)

    const lane = await get<{ forkedAt: string | null; title: string | null }>(
      server,
      `/v1/conversations/${laneId}/tree`,
    )
    expect(lane).toMatchObject({ title: 'once more', forkedAt: expect.any(String) })
    const after = await get<{ conversationId: string }>(server, `/v1/conversations/${run.conversationId}/tree`)
    expect(after).toEqual(before)
    const audit = await place.run(['audit', '--verify'])
    expect(audit.code).toBe(0)
  })

  test('a fork that goes on differs: the comparison shows the nodes that changed, and no others', async () => {
    const place = new Place()
    const server = await inspector(place)
    const run = await start(server, 'teller')
    const ann = await visitor()
    const page = await ann.open(at(server, `/c/${run.conversationId}`))
    await unfold(page, 'child')
    await unfold(page, 'grandchild')
    // The first one speaks until the gate is open; the second one finds it open.
    await threadOf(page, 'grandchild')
      .getByText(/word-3/)
      .waitFor()
    place.open()
    await get(server, `/v1/runs/${run.runId}/result?wait=30`)
    const [child] = (await treeOf(server, run.conversationId)).runs[0]?.children ?? []
    if (child === undefined) throw new Error('It has a child.')

    await threadOf(page, 'child').getByText('It spoke.').waitFor()
    await threadOf(page, 'child').locator(':scope > .entry[data-node]').nth(1).focus()
    await page.keyboard.press('f')
    await page.getByRole('radio', { name: /Run them again/ }).check()
    await page.getByRole('button', { name: 'Make the lane' }).click()
    await expect.poll(() => new URL(page.url()).pathname).not.toBe(`/c/${run.conversationId}`)
    const laneId = new URL(page.url()).pathname.slice('/c/'.length)
    const [lane] = (await treeOf(server, laneId)).runs
    await get(server, `/v1/runs/${lane?.runId}/result?wait=30`)

    await page.goto(`${server.base}/diff/${child.runId}/${lane?.runId}`)
    const rows = page.getByRole('table', { name: 'Differences' }).locator('tbody tr')
    await rows.first().waitFor()
    // The forked message is a copy, which cost nothing; then the call with other words, and who said them.
    expect(await rows.locator('.place').allTextContents()).toEqual([
      'child › 1, tokens',
      'child › 2, came out',
      'child › grandchild#1 › 1, came out',
    ])
    expect(await rows.locator('del').allTextContents()).toContainEqual(expect.stringContaining('word-3'))
  })
})

interface Tree {
  readonly runs: readonly { readonly runId: string; readonly children: Tree['runs'] }[]
}

function treeOf(server: Parameters<typeof get>[0], conversationId: string): Promise<Tree> {
  return get(server, `/v1/conversations/${conversationId}/tree`)
}
