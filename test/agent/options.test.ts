import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { agent, createRuntime } from 'legate'
import { toUIMessageStream, toUIMessages } from 'legate/ai-sdk'
import { askTools, joinSpawned } from 'legate/background'
import { planner } from 'legate/hooks'
import { openSubagents, recipeAgent } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { developerTools } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { openRuntime } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const speaker = () => agent({ name: 'speaker', instructions: '', model: scriptedModel(() => 'ok') })
const refusal = (message: string) =>
  expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining(message) })
const file = { name: 'x', instructions: 'You say ok.' }

describe('a misspelt or wrong option is refused, and not ignored', () => {
  test.each<[string, () => unknown, string]>([
    [
      'openSubagents({ settings })',
      () => openSubagents({ settings: { temprature: 1 } as never }),
      'openSubagents(): settings has no option "temprature". Did you mean "temperature"?',
    ],
    [
      'openSubagents({ settings: { maxTurns } })',
      () => openSubagents({ settings: { maxTurns: 0 } }),
      'maxTurns must be a whole number of at least 1, not 0',
    ],
    ['askTools', () => askTools({ x: 1 } as never), 'askTools() has no option "x". It has none.'],
    ['developerTools', () => developerTools({ x: 1 } as never), 'developerTools() has no option "x". It has none.'],
    [
      'toUIMessageStream',
      () => toUIMessageStream({} as never, { x: 1 } as never),
      'toUIMessageStream(run) has no option "x"',
    ],
    [
      'hooks.onEvent',
      () => agent({ name: 'a', instructions: '', hooks: { onEvent: { 'tool-reslt': () => 0 } as never } }),
      'hooks.onEvent: there is no event "tool-reslt". Did you mean "tool-result"?',
    ],
    [
      'a turn of a script',
      () => scriptedModel([{ txt: 'a' } as never]),
      'A turn of scripted/model has no option "txt". Did you mean "text"?',
    ],
    ['a turn that is none', () => scriptedModel([5 as never]), 'takes an object of options, not 5'],
  ])('%s', (_name, say, message) => {
    expect(say).toThrow(message)
  })

  test('explain', async () => {
    await expect(openRuntime().explain(speaker(), 'tols:x')).rejects.toThrow(
      '"tols:x" is not a request: write one such as tool:deploy',
    )
  })

  test('a parameter that a recipe does not have', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'legate-options-'))
    const recipe = path.join(folder, 'r.yaml')
    const tone = '{ key: tone, input_type: string, requirement: optional, default: kind, description: d }'
    writeFileSync(recipe, `title: t\ndescription: d\ninstructions: Be {{ tone }}.\nparameters:\n  - ${tone}\n`)

    await expect(recipeAgent(recipe, { parameters: { tnoe: 'dry' } })).rejects.toThrow(
      'recipeAgent(): parameters has no option "tnoe". Did you mean "tone"?',
    )
    expect((await recipeAgent(recipe, { parameters: { tone: 'dry' } })).name).toBe('r')
    rmSync(folder, { recursive: true })
  })

  test.each<[string, object, string]>([
    ['grnat', { grnat: { use: [] } }, 'run(agent, input, options) has no option "grnat". Did you mean "grant"?'],
    ['conversationID', { conversationID: 'x' }, 'has no option "conversationID". Did you mean "conversationId"?'],
    ['budgt', { budgt: { tokens: 5 } }, 'has no option "budgt". Did you mean "budget"?'],
  ])('run(agent, input, { %s })', async (_name, options, message) => {
    const runtime = openRuntime()

    expect(() => runtime.run(speaker(), 'go', options)).toThrow(message)
    await expect(speaker().generate('go', options)).rejects.toThrow(message)
    expect(localStore(runtime).roots({ limit: 1 })).toEqual([])
  })

  test.each<[object, string]>([
    [{ wak: 'auto' }, 'spawn(agent, input, options) has no option "wak". Did you mean "wake"?'],
    [{ wake: 'now' }, 'wake must be one of "auto", "passive", not "now"'],
  ])('spawn(agent, input, %j)', async (options, message) => {
    await expect(openRuntime().spawn(speaker(), 'go', options)).rejects.toThrow(message)
  })

  test.each<[object, string]>([
    [{ grnat: {} }, 'createRuntime() has no option "grnat". Did you mean "grant"?'],
    [{ engine: { worker: 3 } }, 'createRuntime({ engine }) has no option "worker". Did you mean "workers"?'],
    [{ engine: { workers: '3' } }, 'createRuntime({ engine }): workers must be a number of at least 0, not "3"'],
    [{ compaction: true }, 'createRuntime(): compaction must be an object, or false, not true'],
    [{ compaction: 5 }, 'compaction must be an object, or false, not 5'],
    [{ compaction: { wndowTokens: 5 } }, 'has no option "wndowTokens". Did you mean "windowTokens"?'],
    [{ compaction: { at: 2 } }, 'createRuntime({ compaction }): at must be a number from 0.1 to 1, not 2'],
    [{ compaction: { at: 0.5, keep: 0.6 } }, 'keep must be a number from 0.05 to 0.5, not 0.6'],
    [{ compaction: { at: 0.5, keep: 0.5 } }, 'keep must be less than at'],
  ])('createRuntime(%j)', (options, message) => {
    expect(() => createRuntime(options)).toThrow(message)
  })

  test.each<[object, string]>([
    [{ grnat: {} }, 'recipeAgent() has no option "grnat". Did you mean "grant"?'],
    [{ reading: 'loose' }, 'reading must be one of "strict", "lenient", not "loose"'],
    [{ mode: 'yolo' }, 'recipeAgent(): mode must be one of "auto", "approve"'],
    [{ subagents: true }, 'subagents must be an object, or false, not true'],
  ])('recipeAgent(file, %j)', async (options, message) => {
    await expect(recipeAgent(file as never, options)).rejects.toThrow(message)
  })

  test.each<[object, string]>([
    [{ strateg: 'native' }, 'planner() has no option "strateg". Did you mean "strategy"?'],
    [{ maxRounds: 0 }, 'planner(): maxRounds must be a whole number of at least 1, not 0'],
    [{ planOnly: 'yes' }, 'planOnly must be true or false, not "yes"'],
  ])('planner(%j)', (options, message) => {
    expect(() => planner(options)).toThrow(message)
  })

  test.each<[object, string]>([
    [{ temprature: 1 }, 'agent "a".settings has no option "temprature". Did you mean "temperature"?'],
    [{ temperature: 'hot' }, 'temperature must be a number of at least 0, not "hot"'],
    [{ maxOutputTokens: -5 }, 'maxOutputTokens must be a whole number of at least 1, not -5'],
  ])('agent({ settings: %j })', (settings, message) => {
    expect(() => agent({ name: 'a', instructions: '', settings })).toThrow(message)
  })

  test('run.events(), runtime.picture(), joinSpawned() and observe() refuse what they do not know', async () => {
    const runtime = openRuntime()
    const run = runtime.run(speaker(), 'go')
    await run.result

    expect(() => run.events({ after: 'x' as never })).toThrow('run.events(): after must be a number')
    expect(() => run.events({ afer: 1 } as never)).toThrow('Did you mean "after"?')
    await expect(runtime.picture(run.conversationId, { of: 'x' as never })).rejects.toThrow('one of "tree", "graph"')
    await expect(joinSpawned([], 'x' as never)).rejects.toThrow('"x" is none of settled, all, any')
    const talk = await runtime.conversation(run.conversationId)
    await expect(talk.observe({ role: 'wizard' as never, content: 'x' })).rejects.toThrow(
      'one of user, developer, agent',
    )
  })

  test('handles that nobody awaited are refused with the remedy', async () => {
    const runtime = openRuntime()
    const run = runtime.run(speaker(), 'go')
    await run.result
    const spawned = runtime.spawn(speaker(), 'go')
    const [attached, talk] = [runtime.attach(run.id), runtime.conversation(run.conversationId)]

    await expect(joinSpawned([spawned as never], 'all')).rejects.toThrow(
      refusal('joinSpawned() takes handles that spawn() gave, not a promise: await it first.'),
    )
    expect(() => toUIMessageStream(attached as never)).toThrow(
      refusal('toUIMessageStream(run) takes a run, not a promise: await it first.'),
    )
    await expect(toUIMessages(talk as never)).rejects.toThrow('not a promise: await it first.')
    await Promise.all([talk, (await spawned).result()])
  })

  test.each<[unknown, string]>([
    [5, 'import(lines) takes what export() gave, as lines or as one text, not 5.'],
    [undefined, 'import(lines) takes what export() gave, as lines or as one text, not undefined.'],
    [[5], 'Line 1 of the export cannot be taken: It is not a text.'],
  ])('runtime.import(%j)', async (lines, message) => {
    await expect(openRuntime().import(lines as never)).rejects.toThrow(refusal(message))
  })

  test.each<[unknown, string]>([
    ['blue', 'answer(nodeId, word) takes { allow: true } or { allow: false }, or { text } to answer a question.'],
    [true, 'answer(nodeId, word) takes'],
    [undefined, 'answer(nodeId, word) takes'],
    [{ allow: false, edit: { to: 'x' } }, 'answer(nodeId, { edit }): only what you allow runs with new arguments.'],
  ])('runtime.answer(nodeId, %j)', async (word, message) => {
    await expect(openRuntime().answer('n1', word as never)).rejects.toThrow(refusal(message))
  })

  test.each([true, 5, { wndow: 1 }])('createRuntime({ compaction: %j })', (compaction) => {
    expect(() => openRuntime({ compaction: compaction as never })).toThrow(/createRuntime\(.*compaction/)
  })

  test.each<[object, string]>([
    [{ contextTurn: 5 }, 'configure() has no option "contextTurn". Did you mean "contextTurns"?'],
    [{ contextTurns: 5_000 }, 'contextTurns must be a whole number from 1 to 1000, not 5000'],
  ])('conversation.configure(%j)', async (settings, message) => {
    const runtime = openRuntime()
    const { conversationId } = await runtime.run(speaker(), 'go').result

    await expect((await runtime.conversation(conversationId)).configure(settings)).rejects.toThrow(message)
  })
})

describe('a value that cannot work is refused with a typed error', () => {
  test.each([null, 5, {}, Symbol('x')])('runtime.explain(%s, ...)', async (of) => {
    await using runtime = createRuntime()
    await expect(runtime.explain(of as never, 'tool:x')).rejects.toMatchObject({
      code: 'definition',
      message: expect.stringContaining('that is not an agent'),
    })
  })
  test.each([null, {}, 5])('an engine that is %j', (made) => {
    expect(() => createRuntime({ engine: { create: () => made as never } })).toThrow(
      /it must give an engine.*start\(\)/,
    )
  })
  test.each([5, {}, null])('the scheduler %j', (scheduler) => {
    expect(() => createRuntime({ scheduler: scheduler as never })).toThrow(/it needs defer\(run\)/)
  })
  test('a name of an agent that the runtime does not know', async () => {
    const editor = agent({ name: 'editor', instructions: '', model: scriptedModel(['Edited.']) })
    await using runtime = createRuntime({ agents: [editor] })

    expect((await runtime.run('editor', 'go').result).text).toBe('Edited.')
    expect(() => runtime.run('editr', 'go')).toThrow('This runtime has no agent "editr". It knows editor')
  })

  test('a symbol is the id of nothing', async () => {
    await using runtime = createRuntime()
    await expect(runtime.why(Symbol('x') as never)).rejects.toMatchObject({ code: 'not_found' })
  })
})
