import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { Place } from '../../cli/support/cli.ts'
import { skipWithoutBrowser, useBrowser, visitor } from '../support/browser.ts'
import { get, inspector, start, travel } from '../support/inspector.ts'

useBrowser()
beforeEach(skipWithoutBrowser)

test('a run becomes one file that shows the same views offline, and asks nobody for anything', async () => {
  const place = new Place()
  place.open()
  const server = await inspector(place)
  const title = 'Count </script><img src=x onerror=alert(1)> marks'
  place.more['LEGATE_TEST_MARKS'] = path.join(place.folder, 'marks')
  const run = await start(server, 'teller', { title })
  await get(server, `/v1/runs/${run.runId}/result?wait=30`)
  const file = path.join(place.folder, 'run.html')
  const { code, stdout } = await place.run(['export', run.runId.slice(-8), '--html', file])
  expect([code, stdout]).toEqual([0, expect.stringContaining('run.html: ')])
  expect(statSync(file).mode & 0o777).toBe(0o600)
  server.process.kill('SIGKILL')

  const html = readFileSync(file, 'utf8')
  expect(html).toMatch(
    /Content-Security-Policy" content="default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-/,
  )
  expect(html).not.toContain('<img src=x')
  const ann = await visitor({ offline: true })
  const asked: string[] = []
  ann.context.on('request', (request) => asked.push(request.url()))
  const page = await ann.open(`file://${file}`)
  await page.getByRole('heading', { level: 1, name: title }).waitFor()
  await page.getByText('They have spoken.').first().waitFor()
  await page.getByRole('link', { name: 'Time', exact: true }).click()
  await page.locator('.tl .names').getByText('grandchild').waitFor()
  await travel(page, 3)
  await page.locator('.log li.now[data-seq="3"]').waitFor()
  expect(await page.locator('.tl .names a').count()).toBe(1)
  await page.getByRole('link', { name: 'Graph', exact: true }).click()
  await page.getByText('teller').first().waitFor()

  expect(await page.getByRole('link').allTextContents()).not.toContainEqual(
    expect.stringMatching(/New run|Inbox|Compare|Operations/),
  )
  expect(await page.getByRole('textbox').count()).toBe(0)
  expect(
    asked.filter((url) => !url.startsWith('file:') && !url.startsWith('data:') && !url.startsWith('blob:')),
  ).toEqual([])
})

test('a file of a run that waits for people asks nobody', async () => {
  const place = new Place()
  const server = await inspector(place)
  const run = await start(server, 'lead')
  await expect
    .poll(async () => JSON.stringify(await get(server, '/v1/inbox')), { timeout: 20_000 })
    .toMatch(/deploy.*Shall I book|Shall I book.*deploy/)
  const file = path.join(place.folder, 'run.html')
  await place.run(['export', run.runId, '--html', file])
  const page = await (await visitor({ offline: true })).open(`file://${file}`)

  await page.getByText('Waits for a person.').waitFor()
  await page.getByText('Shall I book 38 corrections').first().waitFor()

  expect(await page.getByRole('button', { name: /Allow|Deny|Stop|Send/ }).count()).toBe(0)
  expect(await page.getByRole('textbox').count()).toBe(0)
})

test('through a server it is the same file', async () => {
  const place = new Place()
  place.open()
  const server = await inspector(place)
  const run = await start(server, 'teller')
  await get(server, `/v1/runs/${run.runId}/result?wait=30`)
  const files = ['here.html', 'there.html'].map((name) => path.join(place.folder, name))

  await place.run(['export', run.runId, '--html', files[0] ?? ''])
  await place.run(['export', run.runId, '--html', files[1] ?? '', '--server', server.url])

  const [here, there] = files.map((file) => readFileSync(file, 'utf8'))
  expect(there).toBe(here)
})
