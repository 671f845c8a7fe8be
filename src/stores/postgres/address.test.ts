import { expect, test } from 'vitest'
import { postgresStore } from './index.ts'

test('a store is named by an address without its password, and with its schema', async () => {
  const stores = [
    postgresStore('postgres://ann:secret@db.example:5433/app?password=secret&sslmode=require'),
    postgresStore('postgres://ann:secret@db.example/app?schema=mine'),
    postgresStore({ url: 'postgres://ann@db.example/app', schema: 'mine' }),
  ]
  expect(stores.map(({ address }) => address)).toEqual([
    'postgres://ann@db.example:5433/app',
    'postgres://ann@db.example/app?schema=mine',
    'postgres://ann@db.example/app?schema=mine',
  ])
  for (const store of stores) await store.close()
})
