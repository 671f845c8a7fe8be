import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { DURABLE_EVENTS, LIVE_EVENTS } from 'legate'
import { expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '../../..')

test('the reference is what the script makes of the types, and every option and event has words', {
  timeout: 120_000,
}, () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/reference.mjs', '--check'], {
    cwd: root,
    encoding: 'utf8',
  })

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})

test('the reference has every event there is', () => {
  const page = readFileSync(path.join(root, 'docs/reference/events.md'), 'utf8')
  const sections = [...page.matchAll(/^### `([\w-]+)`$/gm)].map(([, type]) => type)

  expect(sections.toSorted()).toEqual([...DURABLE_EVENTS, ...LIVE_EVENTS].toSorted())
})
