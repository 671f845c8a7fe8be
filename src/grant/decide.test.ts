import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decide, type Verdict } from './decide.ts'
import { delegateLayer, type Layer, useLayer } from './grant.ts'

const severity: Record<Verdict, number> = { allow: 0, ask: 1, deny: 2 }

const rule = fc
  .tuple(
    fc.constantFrom('tool', 'agent', 'model', 'file.read', 'file.*', 'net'),
    fc.constantFrom('*', '**', 'a', 'b', 'a*', '*b', 'a/**', 'a/*', '/x/**'),
  )
  .map(([domain, pattern]) => `${domain}:${pattern}`)
const rules = fc.array(rule, { maxLength: 4 })
const layer: fc.Arbitrary<Layer> = fc.record({
  by: fc.constantFrom('one', 'two', 'three'),
  allow: rules,
  ask: rules,
  deny: rules,
})
const layers = fc.array(layer, { maxLength: 5 })
const request = fc.tuple(
  fc.constantFrom('tool', 'agent', 'model', 'file.read', 'file.write', 'net', 'exec'),
  fc.constantFrom('a', 'b', 'ab', 'a/b', '/x/y', '', 'c'),
)
const many = { numRuns: 2_000 }

describe('I2: the laws of a decision', () => {
  test('the order of layers never matters', () => {
    fc.assert(
      fc.property(layers, request, fc.nat(), (stack, [domain, name], seed) => {
        const turned = [
          ...stack.slice(seed % (stack.length + 1)),
          ...stack.slice(0, seed % (stack.length + 1)),
        ].reverse()
        expect(decide(turned, domain, name).verdict).toBe(decide(stack, domain, name).verdict)
      }),
      many,
    )
  })

  test('the order of rules never matters', () => {
    fc.assert(
      fc.property(layers, request, (stack, [domain, name]) => {
        const turned = stack.map((one) => ({
          by: one.by,
          allow: one.allow.toReversed(),
          ask: one.ask.toReversed(),
          deny: one.deny.toReversed(),
        }))
        expect(decide(turned, domain, name).verdict).toBe(decide(stack, domain, name).verdict)
      }),
      many,
    )
  })

  test('one more layer never widens', () => {
    fc.assert(
      fc.property(layers, layer, request, fc.nat(), (stack, extra, [domain, name], at) => {
        const more = stack.toSpliced(at % (stack.length + 1), 0, extra)
        expect(severity[decide(more, domain, name).verdict]).toBeGreaterThanOrEqual(
          severity[decide(stack, domain, name).verdict],
        )
      }),
      many,
    )
  })

  test('deny absorbs: a layer that denies decides alone', () => {
    fc.assert(
      fc.property(layers, layer, request, (stack, extra, [domain, name]) => {
        const deny: Layer = { ...extra, deny: [...extra.deny, `${domain}:${name}`] }
        expect(decide([...stack, deny], domain, name).verdict).toBe('deny')
      }),
      many,
    )
  })

  test('one more deny never widens, one more ask never allows, one more allow never narrows', () => {
    fc.assert(
      fc.property(layer, rule, request, (one, extra, [domain, name]) => {
        fc.pre(!extra.startsWith('model:'))
        const before = severity[decide([one], domain, name).verdict]
        const asked = severity[decide([{ ...one, ask: [...one.ask, extra] }], domain, name).verdict]
        const denied = severity[decide([{ ...one, deny: [...one.deny, extra] }], domain, name).verdict]
        const allowed = severity[decide([{ ...one, allow: [...one.allow, extra] }], domain, name).verdict]
        expect(denied).toBeGreaterThanOrEqual(before)
        expect(asked).toBeGreaterThanOrEqual(Math.min(before, severity.ask))
        expect(allowed).toBeLessThanOrEqual(before)
      }),
      many,
    )
  })

  test('the stack is as strict as its strictest layer', () => {
    fc.assert(
      fc.property(fc.array(layer, { minLength: 1, maxLength: 5 }), request, (stack, [domain, name]) => {
        const each = stack.map((one) => severity[decide([one], domain, name).verdict])
        expect(severity[decide(stack, domain, name).verdict]).toBe(Math.max(...each))
      }),
      many,
    )
  })

  test('I1: what a host denies or does not pass on, no child of any depth gets', () => {
    fc.assert(
      fc.property(rules, rules, layers, request, (delegate, deny, below, [domain, name]) => {
        const host = delegateLayer('host', { delegate, deny })
        fc.pre(decide([host], domain, name).verdict === 'deny')
        const child = useLayer('child', { use: ['tool:**', 'agent:**', 'model:**', 'file.*:**', 'net:**', 'exec:**'] })
        expect(decide([host, ...below, child], domain, name).verdict).toBe('deny')
      }),
      many,
    )
  })
})

describe('a decision', () => {
  const allowing = (...allow: string[]): Layer => ({ by: 'me', allow, ask: [], deny: [] })

  test('without layers allows', () => {
    expect(decide([], 'tool', 'x')).toMatchObject({ verdict: 'allow', by: null })
  })

  test('without a rule denies, and says so', () => {
    expect(decide([allowing('tool:search')], 'tool', 'deploy')).toEqual({
      verdict: 'deny',
      by: 'me',
      reason: 'no rule of me allows tool:deploy',
    })
  })

  test('names the layer and the rule that decided', () => {
    const strict: Layer = { by: 'boss', allow: ['tool:*'], ask: ['tool:d*'], deny: ['tool:deploy'] }

    expect(decide([allowing('tool:*'), strict], 'tool', 'deploy').reason).toBe('boss denies tool:deploy')
    expect(decide([allowing('tool:*'), strict], 'tool', 'draw')).toMatchObject({
      verdict: 'ask',
      by: 'boss',
      reason: 'boss asks for tool:d*',
    })
  })

  test('deny beats ask, ask beats allow, within one layer', () => {
    const all: Layer = { by: 'me', allow: ['tool:*'], ask: ['tool:*'], deny: ['tool:x'] }

    expect(decide([all], 'tool', 'x').verdict).toBe('deny')
    expect(decide([all], 'tool', 'y').verdict).toBe('ask')
  })

  test('a rule of one domain says nothing of another', () => {
    expect(decide([allowing('agent:search')], 'tool', 'search').verdict).toBe('deny')
    expect(decide([allowing('tool:*')], 'toolbox', 'x').verdict).toBe('deny')
    expect(decide([allowing('file.read:**')], 'file.write', '/x').verdict).toBe('deny')
    expect(decide([allowing('file.*:/x/**')], 'file.write', '/x/y').verdict).toBe('allow')
    expect(decide([allowing('file.*:**')], 'tool', 'x').verdict).toBe('deny')
  })

  test('a layer without a rule for models says nothing of them; one with a rule does', () => {
    expect(decide([allowing('tool:*')], 'model', 'openai/gpt').verdict).toBe('allow')
    expect(decide([allowing()], 'model', 'openai/gpt').verdict).toBe('allow')
    expect(decide([allowing('model:openai/*')], 'model', 'openai/gpt').verdict).toBe('allow')
    expect(decide([allowing('model:openai/*')], 'model', 'other/gpt').verdict).toBe('deny')
    expect(decide([{ ...allowing(), deny: ['model:openai/*'] }], 'model', 'openai/gpt').verdict).toBe('deny')
  })

  test('a name that holds a colon is matched as a whole', () => {
    expect(decide([allowing('agent:team:lead')], 'agent', 'team:lead').verdict).toBe('allow')
    expect(decide([allowing('agent:team:lead')], 'agent', 'team').verdict).toBe('deny')
  })
})
