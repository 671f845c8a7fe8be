import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { beforeEach, expect, test } from 'vitest'
import { Place } from '../../cli/support/cli.ts'
import { skipWithoutBrowser, useBrowser, visitor } from '../support/browser.ts'
import { at, inspector, start } from '../support/inspector.ts'

useBrowser()
beforeEach(skipWithoutBrowser)

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

/** What axe finds on a page, in a few words each. */
async function violations(page: Page): Promise<string[]> {
  const found = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: Violation[] }> }
    }
    const values = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
    return (await axe.run({ runOnly: { type: 'tag', values } })).violations
  })
  return found.flatMap(({ id, nodes }) =>
    nodes
      .slice(0, 4)
      .map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary?.slice(0, 200)}`),
  )
}

test.each(['light', 'dark'] as const)('axe finds nothing on any page (%s)', async (colorScheme) => {
  const place = new Place()
  place.more['LEGATE_TEST_MARKS'] = path.join(place.folder, 'marks')
  const server = await inspector(place)
  const [run, other] = [await start(server, 'lead'), await start(server, 'counter')]
  const ann = await visitor({ colorScheme, reducedMotion: 'reduce' })
  ann.expects(/status of 401/)
  // Through the protocol of the browser: the policy of the page is for the page.
  await ann.context.addInitScript({ content: axe })
  const found: Record<string, string[]> = {}
  const look = async (name: string, page: Page) => {
    await page.getByRole('heading', { level: 1 }).first().waitFor()
    await page.waitForFunction(() => document.querySelector('.sk') === null)
    const list = await violations(page)
    if (list.length > 0) found[name] = list
  }

  await look('token', await ann.open(server.base))
  const page = await ann.open(at(server, `/c/${run.conversationId}`))
  await page.getByText('deploy needs a yes').first().waitFor()
  await look('thread', page)
  for (const [name, to] of [
    ['inbox', '/'],
    ['new', '/new'],
    ['form', '/new/poet'],
    ['graph', `/c/${run.conversationId}/graph`],
    ['time', `/c/${run.conversationId}/time`],
    ['past', `/c/${run.conversationId}/time?seq=20`],
    ['diff', `/diff/${run.runId}/${other.runId}`],
    ['ops', '/ops'],
    ['lost', '/c/01890000-0000-7000-8000-00000000dead'],
  ] as const) {
    if (name === 'lost') ann.expects(/status of 404/)
    await page.goto(server.base + to)
    await look(name, page)
  }

  expect(found).toEqual({})
})

test('a phone shows every page without a scrollbar below', async () => {
  const place = new Place()
  const server = await inspector(place)
  const run = await start(server, 'lead')
  const ann = await visitor({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true })
  const page = await ann.open(at(server, `/c/${run.conversationId}`))
  await page.getByText('deploy needs a yes').first().waitFor({ state: 'attached' })

  for (const to of ['', '/graph', '/time']
    .map((view) => `/c/${run.conversationId}${view}`)
    .concat('/', '/new/poet', '/ops')) {
    await page.goto(server.base + to)
    await page.getByRole('heading', { level: 1 }).first().waitFor({ state: 'attached' })
    const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    expect([to, tooWide]).toEqual([to, expect.toSatisfy((by: number) => by <= 0)])
  }
})
