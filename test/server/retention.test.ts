import { createRuntime } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { fakeClock } from 'legate/testing'
import { expect, test } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'
import { greeter, startServer } from './support/server.ts'

const DAY = 86_400_000

/** A store with a tree of each owner that ended so many days ago. */
async function storeWith(ages: Readonly<Record<string, number>>): Promise<string> {
  const file = `${tempFolder()}/rows.db`
  for (const [owner, days] of Object.entries(ages)) {
    const clock = fakeClock(Date.now() - days * DAY)
    const runtime = createRuntime({ store: sqliteStore(file), agents: [greeter], clock })
    await runtime.run(greeter, 'x', owner === 'nobody' ? {} : { owner }).result
    await runtime.close()
  }
  return file
}

const open = (file: string) => ({ agents: [greeter], store: sqliteStore(file) })

test('a server deletes what is older than its options keep, by owner', async () => {
  const file = await storeWith({ ann: 40, bob: 40, carl: 10, nobody: 40, young: 5 })
  await using setting = await startServer({ keepDays: 30, keepDaysOf: { bob: 90, carl: 7 } }, open(file))
  const owners = async () => (await setting.runtime.conversations()).map(({ owner }) => owner).toSorted()

  await expect.poll(owners, { timeout: 10_000 }).toEqual(['bob', 'young'])
  expect((await setting.runtime.store.archive?.tombstones())?.map(({ reason }) => reason)).toEqual([
    'ttl',
    'ttl',
    'ttl',
  ])
})

test('what an admin sets for an owner comes first', async () => {
  const file = await storeWith({ ann: 40, bob: 40 })
  const set = async (keepDays: number | null, owner: string) => {
    await using setting = await startServer({}, open(file))
    const answer = await setting.post(`/v1/owners/${owner}`, { keepDays }, { method: 'PUT' })
    expect(answer.status).toBe(200)
    expect(await (await setting.get(`/v1/owners/${owner}`)).json()).toEqual({ owner, keepDays })
    const token = await setting.tokenFor({ id: owner, scopes: ['start', 'read', 'delete'] })
    expect((await setting.post(`/v1/owners/${owner}`, { keepDays }, { method: 'PUT', token })).status).toBe(403)
    const wrong = await setting.post(`/v1/owners/${owner}`, { keepDays: 0 }, { method: 'PUT' })
    expect(wrong.status).toBe(400)
  }
  await set(100, 'bob')
  await set(7, 'ann')

  await using setting = await startServer({ keepDays: 30, keepDaysOf: { ann: 90 } }, open(file))

  const owners = async () => (await setting.runtime.conversations()).map(({ owner }) => owner)
  await expect.poll(owners, { timeout: 10_000 }).toEqual(['bob'])
})

test('wrong options are refused', async () => {
  await expect(startServer({ keepDays: 0 })).rejects.toThrow(/keepDays must be a whole number/)
  await expect(startServer({ keepDaysOf: { ann: -1 } })).rejects.toThrow(/ann must be a whole number/)
  await expect(startServer({ webhooks: { retryMs: [-1] } })).rejects.toThrow(/retryMs must be/)
})
