import { expect, test } from 'vitest'
import { memoryStore } from '../../core/store/memory/index.ts'
import type { WakeTaker } from '../../core/store/store.ts'
import { wakesHere } from './folder-store.ts'

test('a wake of a tree that belongs to another folder is left to others', async () => {
  let taker: WakeTaker | undefined
  const listen = async (given: WakeTaker) => {
    taker = given
    return async () => undefined
  }
  const woken: string[] = []
  const { wakes } = wakesHere({ ...memoryStore(), wakes: { listen } }, async (rootId) => rootId === 'here')
  const wake = async (rootId: string) => woken.push(rootId) > 0
  await wakes?.listen({ wake, report: () => undefined })

  expect(await taker?.wake('here', null)).toBe(true)
  expect(await taker?.wake('elsewhere', null)).toBe(false)
  expect(woken).toEqual(['here'])
  expect(wakesHere(memoryStore(), async () => true)).toEqual({})
})
