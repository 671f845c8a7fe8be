import { describe, expect, test } from 'vitest'
import { DefinitionError } from '../base/error.ts'
import { DEFAULT_LIMITS } from '../graph/limits.ts'
import {
  type Budget,
  checkBudget,
  childLimits,
  limitsOf,
  moneyOf,
  ROOT_WALL_MS,
  smallerBudget,
  treeLimitOf,
} from './budget.ts'

describe('the limits of a run', () => {
  test('have defaults; a root may take a day, a child an hour', () => {
    expect(limitsOf([])).toEqual({
      modelCalls: 25,
      toolCalls: 1_000,
      children: 100,
      concurrency: 20,
      depth: 3,
      wallMs: 86_400_000,
    })
    expect(ROOT_WALL_MS).toBe(86_400_000)
    expect(childLimits([undefined], [], 3)).toEqual({ ...DEFAULT_LIMITS, wallMs: 3_600_000 })
  })

  test('are the smallest of what each budget says; what none says is the default', () => {
    const limits = limitsOf([
      { modelCalls: 9, children: 4 },
      undefined,
      { modelCalls: 5 },
      { modelCalls: 7, wallMs: 10 },
    ])

    expect(limits).toMatchObject({ modelCalls: 5, children: 4, wallMs: 10, toolCalls: 1_000 })
  })

  test('may be more than the default', () => {
    expect(limitsOf([{ modelCalls: 500, depth: 9 }])).toMatchObject({ modelCalls: 500, depth: 9 })
  })

  test('never let a child go deeper than its host may', () => {
    expect(childLimits([{ depth: 9 }], [], 2).depth).toBe(2)
    expect(childLimits([{ depth: 1 }], [], 2).depth).toBe(1)
    expect(childLimits([{}], [], 0).depth).toBe(0)
  })
})

describe('a budget that makes no sense is refused', () => {
  test.each<[string, unknown, RegExp]>([
    ['a misspelt key', { turn: 3 }, /a budget has modelCalls, .* not "turn"/],
    ['a key of every object', { toString: 3 }, /not "toString"/],
    ['zero model calls', { modelCalls: 0 }, /budget\.modelCalls must be a whole number of at least 1/],
    ['a negative number', { toolCalls: -1 }, /at least 0/],
    ['half a call', { modelCalls: 1.5 }, /whole number/],
    ['no number', { modelCalls: Number.NaN }, /whole number/],
    ['no end', { wallMs: Number.POSITIVE_INFINITY }, /whole number/],
    ['text', { modelCalls: '3' }, /whole number/],
    ['null', { modelCalls: null }, /whole number/],
    ['dollars below nothing', { usd: -0.01 }, /budget\.usd must be a number of at least 0\./],
    ['endless dollars', { usd: Number.POSITIVE_INFINITY }, /budget\.usd must be a number/],
    ['dollars in words', { usd: '5' }, /budget\.usd must be a number/],
    ['half a token', { tokens: 0.5 }, /budget\.tokens must be a whole number of at least 0/],
    ['a number for all', 7, /here: a budget is an object of numbers/],
    ['nothing for all', null, /here: a budget is an object of numbers/],
  ])('%s', (_name, budget, message) => {
    const check = () => checkBudget(budget as Budget, 'here')

    expect(check).toThrow(DefinitionError)
    expect(check).toThrow(expect.objectContaining({ code: 'definition' }))
    expect(check).toThrow(message)
  })

  test('and zero is fine where it means none', () => {
    checkBudget({ usd: 0, tokens: 0 }, 'here')
    checkBudget({ usd: 0.01 }, 'here')
    checkBudget({ depth: 0, children: 0, toolCalls: 0, modelCalls: 1, concurrency: 1, wallMs: 1 }, 'here')
  })
})

describe('the limits of a child', () => {
  test('I1: are never more than a budget above it names', () => {
    const own = [{ modelCalls: 40, children: 3, wallMs: 5_000_000 }]
    const above = [{ modelCalls: 10 }, undefined, { modelCalls: 20, wallMs: 60_000 }]

    expect(childLimits(own, above, 3)).toMatchObject({ modelCalls: 10, children: 3, wallMs: 60_000 })
  })

  test('are not raised by a larger budget above', () => {
    expect(childLimits([undefined], [{ children: 5_000, modelCalls: 900 }], 3)).toEqual(DEFAULT_LIMITS)
  })
})

describe('tokens and dollars', () => {
  test.each<[string, (Budget | undefined)[], ReturnType<typeof moneyOf>]>([
    ['nothing is said', [], null],
    ['nothing is said of them', [{ modelCalls: 3 }, undefined], null],
    ['of tokens only', [{ tokens: 9 }, { modelCalls: 1 }], { tokens: 9, usd: null }],
    ['of dollars only', [undefined, { usd: 0.5 }], { tokens: null, usd: 0.5 }],
    ['none at all', [{ tokens: 0, usd: 0 }], { tokens: 0, usd: 0 }],
    ['the smallest of each', [{ tokens: 9, usd: 1 }, { tokens: 5 }, { usd: 2, tokens: 7 }], { tokens: 5, usd: 1 }],
  ])('%s', (_name, budgets, money) => {
    expect(moneyOf(budgets)).toStrictEqual(money)
    expect(moneyOf(budgets.toReversed())).toStrictEqual(money)
  })
})

test('how many may run at once in a tree: the smallest number that is said, null when none is', () => {
  expect(treeLimitOf([])).toBeNull()
  expect(treeLimitOf([{ concurrency: 2 }, undefined])).toBeNull()
  expect(treeLimitOf([{ treeConcurrency: 5 }, undefined, { treeConcurrency: 3 }, { modelCalls: 1 }])).toBe(3)
})

describe('two budgets', () => {
  test('at once are as small as either says, in every number, and say nothing of what neither does', () => {
    const a: Budget = { modelCalls: 1, toolCalls: 8, children: 3, concurrency: 9, depth: 0, wallMs: 7 }
    const b: Budget = { modelCalls: 4, toolCalls: 2, children: 5, concurrency: 6, tokens: 100, usd: 0.5 }
    const both: Budget = {
      modelCalls: 1,
      toolCalls: 2,
      children: 3,
      concurrency: 6,
      depth: 0,
      wallMs: 7,
      tokens: 100,
      usd: 0.5,
    }

    expect(smallerBudget(a, b)).toStrictEqual(both)
    expect(smallerBudget(b, a)).toStrictEqual(both)
    expect(smallerBudget({ modelCalls: 2 }, { usd: 1 })).toStrictEqual({ modelCalls: 2, usd: 1 })
  })

  test('of which one is not there are the other, as it is', () => {
    const one: Budget = { modelCalls: 1 }

    expect(smallerBudget(one, undefined)).toBe(one)
    expect(smallerBudget(undefined, one)).toBe(one)
    expect(smallerBudget(undefined, undefined)).toBeUndefined()
  })
})
