import path from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { Place } from '../../cli/support/cli.ts'
import { served } from '../../cli/support/served.ts'
import { skipWithoutBrowser, useBrowser, visitor } from '../support/browser.ts'

// The ground that the other tests of this folder stand on: a page opens, and nothing that goes wrong in it stays unseen.

export const agents = path.resolve(import.meta.dirname, '../programs/agents.mjs')

useBrowser()
beforeEach(skipWithoutBrowser)

test('two commands: the printed address opens the page, and the token leaves the address', async () => {
  const place = new Place()
  const server = await served(place, [agents])
  const ann = await visitor()

  const page = await ann.open(server.url)
  await page.getByRole('heading', { level: 1 }).waitFor()

  expect(page.url()).toBe(`${server.base}/`)
  expect((await fetch(`${server.base}/v1/runs`)).status).toBe(401)
})

test('without a token the page asks for one, and takes the printed link as well', async () => {
  const place = new Place()
  const server = await served(place, [agents])
  const ann = await visitor()
  ann.expects(/status of 401/)
  const page = await ann.open(server.base)
  await page.getByRole('heading', { level: 1, name: 'Enter your token' }).waitFor()
  const height = await page.locator('main').evaluate((main) => main.getBoundingClientRect().height)
  expect(height).toBe(page.viewportSize()?.height)

  await page.getByLabel('Token', { exact: true }).last().fill(server.url)
  await page.getByRole('button', { name: 'Continue' }).click()

  await page.getByRole('heading', { level: 1, name: 'Nothing has run yet' }).waitFor()
})

test('what the content policy blocks, and errors of the page, are seen', async () => {
  const place = new Place()
  const server = await served(place, [agents])
  const ann = await visitor()
  ann.expects(/status of 401/, /require-trusted-types-for/, /page error: seen/, /TrustedScript/)
  const page = await ann.open(server.base)
  const noted: string[] = []
  const { note } = ann
  ann.note = (trouble) => {
    noted.push(trouble)
    note.call(ann, trouble)
  }

  await page.evaluate(() => {
    const script = document.createElement('script')
    script.append('globalThis.ran = true')
    document.head.append(script)
    setTimeout(() => {
      throw new Error('seen')
    })
  })
  await expect.poll(() => noted.join('\n')).toMatch(/content policy: [\s\S]*page error: seen/)

  expect(await page.evaluate(() => 'ran' in globalThis)).toBe(false)
})
