import { chmodSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { localStore } from '../support/rows.ts'
import { Place, skipUnlessBuilt } from './support/cli.ts'
import { serveModel } from './support/model-server.ts'

beforeEach(skipUnlessBuilt)

const place = new Place(afterAll)
place.more['HOME'] = path.join(place.folder, 'home')
let talk: Promise<string> | undefined

/** Gives the short id of a conversation of three rounds, which all tests here read. */
function talked(): Promise<string> {
  talk ??= talkOnce()
  return talk
}

async function talkOnce(): Promise<string> {
  await serveModel(place, (mock) => {
    mock.on({ userMessage: 'one' }, { content: 'First.\n\u001b[31mred' })
    mock.on({ userMessage: 'two' }, { content: 'Second.' })
    mock.on({}, { content: 'Third.' })
  })
  const { stderr } = await place.run(['chat'], { input: 'one\ntwo\nthree\n' })
  return /--continue (\w{8})/.exec(stderr)?.[1] ?? ''
}

test('shows what was said, page by page back to the beginning, and writes nothing to the store', async () => {
  const id = await talked()
  chmodSync(place.store, 0o444)
  onTestFinished(() => chmodSync(place.store, 0o644))
  const whole = await place.run(['transcript', id])
  const page = await place.run(['transcript', id, '--turns', '2'])
  const [, before = ''] = /Earlier: legate (transcript \w{8} --before \w{8})\n$/.exec(page.stdout) ?? []
  const first = await place.run(before.split(' '))

  expect(whole).toMatchObject({
    code: 0,
    stdout:
      'user\n  one\n\nassistant\n  First.\n  \\u001b[31mred\n\nuser\n  two\n\nassistant\n  Second.\n\nuser\n  three\n\nassistant\n  Third.\n\n',
  })
  expect(page.stdout).toMatch(/^user\n {2}two\n[\s\S]*Third\.\n\n2 rounds\. Earlier: /)
  expect(first.stdout).toBe('user\n  one\n\nassistant\n  First.\n  \\u001b[31mred\n\n')
})

test('--json is one line of the transcript a line; any run of the conversation names it', async () => {
  const id = await talked()
  const store = localStore(place.runtime())
  const [root] = store.roots({ limit: 1 })
  const [turn] = store.turnsOf(root?.id ?? '', { limit: 3 })
  const { stdout } = await place.run(['transcript', (turn?.id ?? '').slice(-8), '--json', '--turns', '1'])

  expect((root?.id ?? '').endsWith(id)).toBe(true)
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object),
  ).toMatchObject([
    { role: 'user', text: 'three' },
    { role: 'agent', text: 'Third.', state: 'finished' },
  ])
})

test.each([
  [['transcript', 'ffffffff'], /No id here ends in "ffffffff"/],
  [['transcript', 'ffffffff', '--turns', 'many'], /--turns is a whole number from 1 to 1000, not "many"/],
  [['transcript', 'ffffffff', '--turns', '0'], /--turns is a whole number/],
])('%j is refused', async (args, message) => {
  await talked()
  const { code, stderr } = await place.run(args)

  expect(code).toBe(2)
  expect(stderr).toMatch(message)
})
