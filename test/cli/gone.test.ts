import { renameSync, rmSync } from 'node:fs'
import { beforeEach, expect, test } from 'vitest'
import { agentsModule, Place, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

test.each(['log', 'tree'])('%s -f ends with a line that says that the store is gone', async (command) => {
  const place = new Place()
  const { ids } = await place.startRuns(['talker'])
  const follower = place.legate([command, '-f', ids[0] ?? ''])
  await follower.says('talker')
  removeStore(place)

  const { code, stderr } = await follower.ended

  expect(code).toBe(1)
  expect(stderr).toMatch(/^legate: The store is gone: .*runs\.db was removed or renamed while/m)
})

test('resume whose store is renamed in the middle says so and never says that the run completed', async () => {
  const place = new Place()
  const [id = ''] = await place.orphans('talker')
  const worker = place.legate(['resume', id, '--module', agentsModule, '--json'])
  await worker.says('talker')
  renameSync(place.store, `${place.store}.old`)
  const timer = setTimeout(() => place.open(), 300)

  const { code, stdout, stderr } = await worker.ended
  clearTimeout(timer)

  expect(code).toBe(1)
  expect(stdout + stderr).toContain('The store is gone')
  expect(stdout + stderr).not.toContain('completed')
})

function removeStore({ store }: Place): void {
  for (const ending of ['', '-wal', '-shm']) rmSync(store + ending, { force: true })
}
