import { describe, expect, test } from 'vitest'
import { DeniedError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import {
  budgetsIn,
  ceilingBelow,
  freezeLayer,
  layersForChildren,
  layersForSelf,
  readCeiling,
  stackCeilings,
} from './ceiling.ts'
import { decide, type Verdict } from './decide.ts'
import { EVERYTHING, narrowingLayer, ownLayers } from './grant.ts'
import { secretRequest } from './request.ts'

const layer = { by: 'host', allow: ['tool:*'], ask: ['tool:a'], deny: ['tool:b'] }
const frozen = { v: 1, ...layer }

describe('what is frozen', () => {
  test('has a version, and a budget where there is one', () => {
    expect(freezeLayer(layer)).toEqual(frozen)
    expect(Object.keys(freezeLayer(layer) as object)).not.toContain('budget')
    expect(freezeLayer({ ...layer, budget: { modelCalls: 3 } })).toEqual({ ...frozen, budget: { modelCalls: 3 } })
  })

  test('says that nobody is asked, where it is so', () => {
    const strict = { ...frozen, neverAsks: true }

    expect(freezeLayer({ ...layer, neverAsks: true })).toEqual(strict)
    expect(layersForSelf([strict])).toEqual([strict])
    expect(layersForChildren([strict])).toEqual([strict])
  })

  test('is read as it was', () => {
    const ceiling = [frozen, { ...frozen, budget: { usd: 0.5 } }]

    expect(readCeiling(ceiling)).toEqual(ceiling)
    expect(readCeiling([])).toEqual([])
  })

  test('may say turns for model calls, as older rows do', () => {
    const [read] = readCeiling([{ ...frozen, budget: { turns: 3, usd: 1 } }])

    expect(read?.budget).toEqual({ modelCalls: 3, usd: 1 })
  })

  test('is read once: rows are never changed', () => {
    let reads = 0
    const watched = {
      ...frozen,
      get v() {
        reads++
        return 1
      },
    }
    const ceiling = [watched]

    readCeiling(ceiling)
    readCeiling(ceiling)

    expect(reads).toBe(1)
  })
})

describe('an agent’s own grant', () => {
  const use = { by: 'worker', allow: ['tool:a'], ask: [], deny: ['tool:b'] }

  test('is one layer for itself and all below it where it passes on what it may do', () => {
    const ceiling = ownLayers('worker', { use: ['tool:a'], deny: ['tool:b'] }).map(freezeLayer)

    expect(layersForSelf(ceiling)).toMatchObject([use])
    expect(layersForChildren(ceiling)).toMatchObject([use])
  })

  test('is two where it passes on something else', () => {
    const grant = { use: ['tool:a'], delegate: ['tool:c'], deny: ['tool:b'] }
    const ceiling = ownLayers('worker', grant).map(freezeLayer)

    expect(layersForSelf(ceiling)).toMatchObject([use])
    expect(layersForChildren(ceiling)).toEqual([{ v: 1, ...use, allow: ['tool:c'] }])
  })
})

describe('what cannot be read allows nothing', () => {
  const READ = 'What this agent may do was frozen and cannot be read'
  const FORM = `${READ}: it is of form`
  const WHOLE = `${READ}: a layer is not whole. Nothing is allowed.`

  test.each<[string, Json, string]>([
    ['a newer form', { ...frozen, v: 2 }, `${FORM} 2; this version knows 1. Nothing is allowed.`],
    ['no form', { ...layer }, `${FORM} undefined; this version knows 1. Nothing is allowed.`],
    ['the form as text', { ...frozen, v: '1' }, `${FORM} "1"; this version knows 1. Nothing is allowed.`],
    ['nothing', null, `${FORM} undefined; this version knows 1. Nothing is allowed.`],
    ['a text', 'tool:*', `${FORM} undefined; this version knows 1. Nothing is allowed.`],
    ['nobody', { ...frozen, by: 7 }, WHOLE],
    ['no rules to allow', { ...frozen, allow: null }, WHOLE],
    ['a text to ask for', { ...frozen, ask: 'tool:a' }, WHOLE],
    ['an object of denials', { ...frozen, deny: {} }, WHOLE],
    [
      'a layer that binds somebody else',
      { ...frozen, binds: 'nobody' },
      `${READ}: a layer does not say whom it binds. Nothing is allowed.`,
    ],
    [
      'a layer that asks sometimes',
      { ...frozen, neverAsks: 'sometimes' },
      `${READ}: a layer does not say whether anybody is asked. Nothing is allowed.`,
    ],
    ['a number among rules', { ...frozen, deny: ['tool:a', 7] }, WHOLE],
    ['an empty budget', { ...frozen, budget: null }, `${READ}: a layer: a budget is an object of numbers. Nothing`],
    [
      'a budget of words',
      { ...frozen, budget: { modelCalls: 'many' } },
      `${READ}: a layer: budget.modelCalls must be a whole`,
    ],
    ['a budget nobody knows', { ...frozen, budget: { unlimited: 1 } }, 'not "unlimited". Nothing is allowed.'],
  ])('%s', (_name, broken, message) => {
    const read = () => readCeiling([frozen, broken])

    expect(read).toThrow(DeniedError)
    expect(read).toThrow(expect.objectContaining({ code: 'denied' }))
    expect(read).toThrow(message)
  })
})

describe('the ceiling of a turn', () => {
  test('is passed on as it is, as the very same array, where all of it binds below', () => {
    const ceiling = [frozen, { ...frozen, by: 'ann' }]

    expect(ceilingBelow(ceiling)).toBe(ceiling)
  })

  test('is passed on without what binds the turn alone, and binds children with what binds below', () => {
    const ceiling: readonly Json[] = [
      { ...frozen, by: 'self', binds: 'self' },
      { ...frozen, by: 'below', binds: 'below' },
      { ...frozen, by: 'both' },
    ]

    expect(ceilingBelow(ceiling)).toEqual([
      { ...frozen, by: 'below' },
      { ...frozen, by: 'both' },
    ])
    expect(layersForSelf(ceilingBelow(ceiling)).map(({ by }) => by)).toEqual(['below', 'both'])
  })

  test('names a budget for each of its layers, or none', () => {
    expect(budgetsIn([frozen, { ...frozen, budget: { usd: 1 } }])).toEqual([undefined, { usd: 1 }])
  })

  test('is joined with another: nothing is lost, nothing is repeated', () => {
    const own = [frozen]
    const more = [{ ...frozen, by: 'ann' }, { ...frozen }]

    expect(stackCeilings(own, more)).toEqual([frozen, { ...frozen, by: 'ann' }])
    expect(stackCeilings(own, [{ ...frozen }])).toBe(own)
    expect(stackCeilings(own, [])).toBe(own)
    expect(stackCeilings([], more)).toBe(more)
  })
})

describe('layers that were stored before a secret was a request', () => {
  const OLD = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']
  const verdict = (stored: Json): Verdict => decide(readCeiling([stored]), secretRequest('TOKEN')).verdict
  const stored = (allow: string[], ask: string[] = []) => ({ v: 1, by: 'old', allow, ask, deny: [] })

  test('a list that is exactly everything of that time counts as everything of today, and is frozen again as that', () => {
    expect(readCeiling([stored(OLD)])).toMatchObject([{ allow: EVERYTHING }])
    expect(verdict(stored(OLD))).toBe('allow')
    expect(readCeiling([stored(OLD)]).map(freezeLayer)).toEqual([{ ...stored(OLD), allow: EVERYTHING }])
  })

  test('so does everything with the tools that a file names, and the grant of the command line, which asks', () => {
    const [, ...others] = OLD
    const asked = ['file.write:/workspace/**', 'file.delete:/workspace/**', 'exec:*', 'net:*']
    const memory = ['tool:memory_remember', 'tool:memory_forget']
    const reads = ['file.list:/workspace/**', 'file.read:/workspace/**']
    const line = ['tool:*', 'agent:*', 'model:*', ...reads, ...asked, ...memory]

    expect(verdict(stored([...others, 'tool:read', 'tool:subagent']))).toBe('allow')
    expect(verdict(stored(line, [...asked, ...memory]))).toBe('ask')
  })

  test.each([
    [['tool:*', 'agent:*', 'model:*']],
    [['tool:*', 'exec:*', 'net:*']],
    [OLD.toReversed()],
    [OLD.slice(0, -1)],
    [[...OLD, 'exec:ls']],
    [[]],
  ])('any other list stays as it is: %j', (allow) => {
    expect(readCeiling([stored(allow)])).toEqual([stored(allow)])
    expect(verdict(stored(allow))).toBe('deny')
  })

  test('a list of today that says nothing of secrets lets none pass, also where it looks like one of that time', () => {
    const layer = narrowingLayer('ann', { use: OLD })
    const frozen = freezeLayer(layer)

    expect(verdict(frozen)).toBe('deny')
    expect(verdict(freezeLayer(readCeiling([frozen])[0] ?? layer))).toBe('deny')
    expect(verdict(freezeLayer(narrowingLayer('ann', { deny: ['tool:a'] })))).toBe('allow')
  })

  test('the requests that a ceiling denies and asks for stay', () => {
    expect(verdict({ ...stored(OLD), deny: ['secret:*'] })).toBe('deny')
    expect(readCeiling([{ ...stored(OLD, ['exec:*']), deny: ['tool:a'] }])).toEqual([
      { ...stored([...EVERYTHING], ['exec:*']), deny: ['tool:a'] },
    ])
  })
})

test('I1: secrets that code names for an agent bind nothing below it', () => {
  const [own, below] = ownLayers('host', { use: ['tool:*', 'secret:OWN'] }, ['TOKEN', '*']).map(freezeLayer)
  const may = (layers: ReturnType<typeof layersForSelf>, name: string) => decide(layers, secretRequest(name)).verdict
  const ceiling = [own ?? null, below ?? null]

  expect(['TOKEN', 'OWN', 'OTHER'].map((name) => may(layersForSelf(ceiling), name))).toEqual(['allow', 'allow', 'deny'])
  expect(['TOKEN', 'OWN'].map((name) => may(layersForChildren(ceiling), name))).toEqual(['deny', 'allow'])
  expect(ownLayers('host', undefined)).toHaveLength(1)
})
