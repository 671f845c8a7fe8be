import type { Page } from 'playwright-core'
import { beforeEach, expect, test } from 'vitest'
import { ask } from '../../cli/support/served.ts'
import { skipWithoutBrowser, useBrowser, visitor } from '../support/browser.ts'
import { Doer } from '../support/doer.ts'
import { at, get } from '../support/inspector.ts'

useBrowser()
beforeEach(skipWithoutBrowser)

const SCOPES = ['start', 'read', 'approve', 'cancel']

async function tokenFor(doer: Doer, id: string): Promise<{ token: string; keyId: string }> {
  const body = JSON.stringify({ name: id, principal: { id, scopes: SCOPES } })
  const answer = await ask(doer.server, '/v1/tokens', { method: 'POST', body })
  const { token } = (await answer.json()) as { token: string }
  return { token, keyId: token.split('_')[1] ?? '' }
}

/** Everything that the page has, seen or not. */
function all(page: Page): Promise<string> {
  return page.evaluate(() => document.documentElement.outerHTML + document.title)
}

async function who(page: Page): Promise<string> {
  const name = page.locator('.side-foot .cut')
  await expect.poll(() => name.textContent()).not.toBe('')
  return (await name.textContent()) ?? ''
}

test('a person whose token is revoked leaves nothing for the next one in the same tab, and everybody can log out', async () => {
  const doer = await Doer.serve()
  const [ann, bob] = [await tokenFor(doer, 'ann'), await tokenFor(doer, 'bob')]
  const mine = { ...doer, server: { ...doer.server, token: ann.token } }
  const body = JSON.stringify({
    agent: 'doer',
    title: 'SECRET',
    input: 'Do [{"calls":[{"name":"deploy","input":{"a":"SECRET"}}]}]',
  })
  const started = await ask(mine.server, '/v1/runs', { method: 'POST', body })
  const { conversationId } = (await started.json()) as { conversationId: string }
  const tab = await visitor()
  tab.expects(/status of 40[14]/)
  const page = await tab.open(at(mine.server, '/'))
  await page.getByText('SECRET').first().waitFor()
  await page.locator('.side-foot').waitFor()
  await page.getByRole('link', { name: /wants/ }).first().click()
  await page.locator('[data-ask]').waitFor()

  await ask(doer.server, `/v1/tokens/${ann.keyId}`, { method: 'DELETE' })
  await page.getByRole('heading', { name: 'Enter your token' }).waitFor()
  expect(await all(page)).not.toContain('SECRET')
  await page.getByRole('textbox', { name: 'Token' }).fill(bob.token)
  await page.getByRole('button', { name: 'Continue' }).click()
  expect(await who(page)).toBe('bob')
  await page.goto(`${doer.server.base}/c/${conversationId}`)
  await page.getByText('It is not here, or not yours to see.').waitFor()
  expect(await all(page)).not.toMatch(/SECRET|Connection lost/)
  await page.getByRole('link', { name: 'Back to the inbox' }).click()
  await page.getByRole('heading', { level: 1 }).waitFor()
  expect(await all(page)).not.toContain('SECRET')

  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByRole('heading', { name: 'Enter your token' }).waitFor()
  expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain(bob.token)
})

test('a link with another token asks first, and no token stays in the address', async () => {
  const doer = await Doer.serve()
  const mallory = await tokenFor(doer, 'mallory')
  const tab = await visitor()
  const page = await tab.open(at(doer.server, '/'))
  expect(await who(page)).toBe('local')

  await page.goto('about:blank')
  await page.goto(at({ ...doer.server, token: mallory.token }, '/new'))
  await page.getByRole('button', { name: 'Stay signed in as I am' }).click()
  expect(await who(page)).toBe('local')
  expect(page.url()).not.toContain('token')

  await page.evaluate((token) => {
    location.hash = `#token=${token}`
  }, mallory.token)
  await page.getByRole('heading', { name: 'This link has another token' }).waitFor()
  expect(page.url()).not.toContain('token')
  await page.getByRole('button', { name: 'Use the token of the link' }).click()
  await expect.poll(() => page.locator('.side-foot .cut').textContent()).toBe('mallory')
})

test('who answered is named by the whole id, and a long name leaves the button that revokes in sight', async () => {
  const doer = await Doer.serve()
  const run = await doer.deploys({ a: 1 })
  const name = `${'long name '.repeat(9)}end`
  const body = JSON.stringify({ name, principal: { id: 'local@evil.example', scopes: SCOPES, sees: ['local'] } })
  const made = (await (await ask(doer.server, '/v1/tokens', { method: 'POST', body })).json()) as { token: string }
  const { approvals } = await get<{ approvals: { nodeId: string; seen: string }[] }>(doer.server, '/v1/approvals')
  const [{ nodeId, seen } = { nodeId: '', seen: '' }] = approvals
  const answer = { method: 'POST', body: JSON.stringify({ allow: true, seen }) }
  await ask({ ...doer.server, token: made.token }, `/v1/approvals/${nodeId}`, answer)

  const tab = await visitor({ viewport: { width: 1000, height: 800 } })
  const page = await tab.open(at(doer.server, `/c/${run.conversationId}`))
  await page.locator('.ask-done').getByText('local@evil.example').waitFor()
  await page.goto(`${doer.server.base}/ops`)
  const row = page.getByRole('row').filter({ hasText: 'local@evil.example' })
  const table = page.getByRole('region', { name: 'Table of tokens' })
  const [button, box] = [await row.getByRole('button').boundingBox(), await table.boundingBox()]
  expect((button?.x ?? 0) + (button?.width ?? 0)).toBeLessThanOrEqual((box?.x ?? 0) + (box?.width ?? 0))
})
