import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { IdMap } from './collections.ts'

type Step = { set: string; value: number } | { delete: string } | { clear: true }

function take(map: Pick<Map<string, number>, 'set' | 'delete' | 'clear'> | IdMap<number>, step: Step): void {
  if ('set' in step) map.set(step.set, step.value)
  else if ('delete' in step) map.delete(step.delete)
  else map.clear()
}

describe('an IdMap', () => {
  const id = fc.oneof(
    fc.constantFrom('', 'a', '__proto__', 'constructor', 'x'.repeat(40)),
    fc.stringMatching(/^[0-3]{5,6}$/),
    fc.string(),
  )
  const step = fc.oneof<fc.WeightedArbitrary<Step>[]>(
    { weight: 100, arbitrary: fc.record({ set: id, value: fc.nat() }) },
    { weight: 50, arbitrary: fc.record({ delete: id }) },
    { weight: 1, arbitrary: fc.constant({ clear: true }) },
  )

  test('holds what a Map would', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const [map, reference] = [new IdMap<number>(), new Map<string, number>()]
        for (const one of steps) {
          take(map, one)
          take(reference, one)
          expect(map.size).toBe(reference.size)
        }
        expect(new Map(map.entries())).toEqual(reference)
        expect(map.values().toSorted()).toEqual([...reference.values()].toSorted())
        for (const [known, value] of reference) expect([map.has(known), map.get(known)]).toEqual([true, value])
      }),
      { numRuns: 200 },
    )
  })

  test.each([undefined, null, 7, {}, []])('finds nothing by %j, and does not throw', (wrong) => {
    const map = new IdMap<number>()
    map.set('7', 1)

    expect(map.get(wrong as unknown as string)).toBeUndefined()
    expect(map.has(wrong as unknown as string)).toBe(false)
    map.delete(wrong as unknown as string)
    expect(map.size).toBe(1)
  })

  test('what is listed does not see what changes meanwhile', () => {
    const map = new IdMap<number>()
    for (let at = 0; at < 200; at++) map.set(`id-${at}`, at)

    for (const [known] of map.entries()) map.delete(known)

    expect(map.size).toBe(0)
  })
})
