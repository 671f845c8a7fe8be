import { existsSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { createRuntime, type Grant, type RunEvent } from 'legate'
import { MODES, recipeAgent } from 'legate/recipe'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test, vi } from 'vitest'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { useWorld } from '../../support/agents.ts'
import { QUICK } from '../../support/process.ts'
import { localStore } from '../../support/rows.ts'
import { stores } from '../../support/stores.ts'
import { folderWith } from '../support/folder.ts'
import { calling, childRequests, lastResult, recipe, resultsIn, systemOf, userOf } from './support.ts'

const EXEC: Grant = { use: ['tool:*', 'agent:*', 'model:*', 'exec:*'] }

/** Runs a recipe with a scripted model, and gives what came of it. */
async function runRecipe(
  file: string,
  script: Script | readonly string[],
  options: Parameters<typeof recipeAgent>[1] = {},
) {
  const model = scriptedModel(script as Script)
  const runtime = createRuntime({ model })
  const run = runtime.run(await recipeAgent(file, options))
  const events: RunEvent[] = []
  for await (const event of run) events.push(event)
  const outcome = await run.result
  const nodes = localStore(runtime).nodesOf(run.id)
  await runtime.close()
  return { outcome, model, events, nodes }
}

describe('a recipe runs', () => {
  test('instructions, prompt, parameters, settings and turns reach the model', async () => {
    const file = recipe(
      'instructions: "You greet in {{ lang }}."\nextensions: []\nprompt: "Greet {{ who }}."\nsettings: { temperature: 0.2, max_turns: 3 }\nparameters:\n  - { key: who, input_type: string, requirement: required, description: w }\n  - { key: lang, input_type: string, requirement: optional, default: French, description: l }\n',
    )
    const { outcome, model } = await runRecipe(file, ['Bonjour.'], { parameters: { who: 'Ann' } })

    expect(outcome).toMatchObject({ status: 'completed', text: 'Bonjour.' })
    expect(model.requests[0]).toMatchObject({
      messages: [
        { role: 'system', content: 'You greet in French.' },
        { role: 'user', content: 'Greet Ann.' },
      ],
      settings: { temperature: 0.2 },
      path: ['recipe'],
    })
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['subagent'])
  })

  test('without a prompt it begins; what is said to it instead is what it is asked', async () => {
    const file = recipe('instructions: You work.\n')
    const { model } = await runRecipe(file, ['ok'])
    expect(userOf(model.requests[0] ?? { messages: [] })).toBe('Begin.')

    const other = scriptedModel(['ok'])
    await using runtime = createRuntime({ model: other })
    await runtime.run(await recipeAgent(file), 'Do this.').result
    expect(userOf(other.requests[0] ?? { messages: [] })).toBe('Do this.')
  })

  test('a missing value, a broken file and a wrong option are told before anything runs', async () => {
    const file = recipe(
      'prompt: "{{ a }}"\nparameters: [{ key: a, input_type: string, requirement: required, description: d }]\n',
    )

    await expect(recipeAgent(file)).rejects.toThrow('Missing required parameters: ["a"]')
    await expect(recipeAgent(path.join(path.dirname(file), 'none.yaml'))).rejects.toThrow(/none\.yaml/)
    await expect(recipeAgent(file, { mode: 'yolo' as 'auto' })).rejects.toThrow('mode must be one of')
    await expect(recipeAgent(file, { grant: { use: ['exe:*'] } })).rejects.toThrow('must start with one of')
  })

  test('without extensions it has the developer toolkit, as on the command line; with an empty list it has none', async () => {
    const { model } = await runRecipe(recipe('prompt: Go\n'), ['ok'])
    const none = await runRecipe(recipe('prompt: Go\nextensions: []\n'), ['ok'])

    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['read_text_file', 'shell']),
    )
    expect(none.model.requests[0]?.tools.map(({ name }) => name)).toEqual(['subagent'])
  })

  test('a recipe may delegate whatever extensions it lists, unless it is told not to', async () => {
    const file = recipe('prompt: Go\nextensions: [{ type: builtin, name: todo }]\n')

    const { model } = await runRecipe(file, ['ok'])
    expect(model.requests[0]?.tools.map(({ name }) => name)).toContain('subagent')
    const alone = await runRecipe(file, ['ok'], { subagents: false })
    expect(alone.model.requests[0]?.tools.map(({ name }) => name)).not.toContain('subagent')
  })

  test('an agent file is an agent with its model, tools and limits', async () => {
    const folder = folderWith({
      '.claude/agents/reviewer.md':
        '---\nname: reviewer\ndescription: Reviews.\nmodel: own/b\nmaxTurns: 4\n---\nYou review code.\n',
    })
    const other = scriptedModel(['reviewed'], 'own/b')
    await using runtime = createRuntime({ models: { 'own/b': other } })
    const reviewer = await recipeAgent(path.join(folder, '.claude/agents/reviewer.md'))
    const run = runtime.run(reviewer, 'Look at it.')

    expect((await run.result).text).toBe('reviewed')
    expect(systemOf(other.requests[0] ?? { messages: [] })).toBe('You review code.')
    expect(localStore(runtime).turn(run.id)?.limits.modelCalls).toBe(4)
  })

  test.each([
    ['Read, Task', true],
    ['Read, Agent(helper)', true],
    ['Read, Agent(nobody)', false],
    ['Read', false],
    ['"*"', true],
  ])('a file with the tools %s may delegate: %s', async (tools, may) => {
    const text = `---\nname: r\ndescription: d\ntools: ${tools}\n---\nWork.\n`
    const helper = '---\nname: helper\ndescription: Helps.\n---\nHelp.\n'
    const folder = folderWith({ '.claude/agents/r.md': text, '.claude/agents/helper.md': helper })
    const model = scriptedModel(['ok'], 'own/m')
    await using runtime = createRuntime({ models: { 'own/m': model } })
    const file = await recipeAgent(path.join(folder, '.claude/agents/r.md'), { model: 'own/m', cwd: folder })
    await runtime.run(file, 'go').result

    expect(model.requests[0]?.tools.some(({ name }) => name === 'subagent')).toBe(may)
  })

  test('what a file says of tools and programs narrows what it was given, and what is below it', async () => {
    const folder = folderWith({
      '.claude/agents/careful.md':
        '---\nname: careful\ndescription: D.\ntools: Read, Bash(git *), Task\n---\nYou work.\n',
    })
    await using runtime = createRuntime({ model: scriptedModel(['ok']) })
    const careful = await recipeAgent(path.join(folder, '.claude/agents/careful.md'), {
      grant: { use: ['tool:*', 'agent:*', 'model:*', 'exec:*', 'file.*:**'] },
    })
    const run = runtime.run(careful, 'Go.')
    await run.result
    const may = async (request: string) => (await runtime.explain(run.id, request)).verdict

    const asked = ['exec:git status', 'exec:rm -rf /', 'tool:read_text_file', 'tool:write_file']
    expect(await Promise.all(asked.map(may))).toEqual(['allow', 'deny', 'allow', 'deny'])
  })
})

describe('a response schema is asked for by a tool', () => {
  const file = () =>
    recipe(
      'instructions: You count.\nprompt: Count.\nresponse:\n  json_schema:\n    type: object\n    properties: { count: { type: number }, names: { type: array, items: { type: string } } }\n    required: [count]\n',
    )
  const final = (input: object) => calling('recipe__final_output', input as never)

  test('what does not fit is told with its place and asked for again; what fits ends the run', async () => {
    const { outcome, model, nodes } = await runRecipe(file(), (request) => {
      const results = resultsIn(request)
      return results.length === 0 ? final({ count: 'many' }) : final({ count: 3, names: ['a\nb'] })
    })

    const [first, second] = nodes.filter(({ kind }) => kind === 'task')
    expect(String(first?.output.content)).toMatch(/^Validation failed:\n- count: /)
    expect(String(first?.output.content)).toContain('"required"')
    expect(second?.output.content).toBe('Final output successfully collected.')
    expect(outcome).toMatchObject({
      status: 'completed',
      text: '{"count":3,"names":["a\\nb"]}',
      output: { count: 3, names: ['a\nb'] },
      modelCalls: 2,
    })
    expect(model.requests).toHaveLength(2)
    expect(systemOf(model.requests[0] ?? { messages: [] })).toContain('MUST call the tool `recipe__final_output`')
    expect(model.requests[0]?.tools.find(({ name }) => name === 'recipe__final_output')?.inputSchema).toMatchObject({
      type: 'object',
      required: ['count'],
    })
  })

  test('a model that answers in words is reminded, as often as it has turns; then it is max_turns', async () => {
    const { outcome, model } = await runRecipe(file(), () => 'There are three.', { budget: { modelCalls: 3 } })

    expect(outcome).toMatchObject({ status: 'max_turns', output: null })
    const last = model.requests[1]?.messages.at(-1)
    expect(last).toEqual({
      role: 'user',
      content: 'You MUST call the `recipe__final_output` tool NOW with the final output for the user.',
    })
    const patient = await runRecipe(file(), (_, call) => (call < 4 ? 'words' : final({ count: 1 })))
    expect(patient.outcome).toMatchObject({ status: 'completed', output: { count: 1 }, modelCalls: 5 })
  })

  test('in the last turn it still counts; beside other calls too', async () => {
    const last = await runRecipe(file(), () => final({ count: 1 }), { budget: { modelCalls: 1 } })
    expect(last.outcome).toMatchObject({ status: 'completed', output: { count: 1 } })

    const beside = await runRecipe(file(), () => ({
      calls: [
        { name: 'recipe__final_output', input: { count: 2 } },
        { name: 'nothing', input: {} },
      ],
    }))
    expect(beside.outcome).toMatchObject({ status: 'completed', output: { count: 2 }, modelCalls: 1 })
  })

  test('a schema that is not an object is asked for in one', async () => {
    const list = recipe('prompt: List.\nresponse: { json_schema: { type: array, items: { type: string } } }\n')
    const { outcome } = await runRecipe(list, () => final({ output: ['a', 'b'] }))

    expect(outcome).toMatchObject({ status: 'completed', output: ['a', 'b'], text: '["a","b"]' })
  })

  test('a child gives it as one line of JSON whatever summary says, and as data', async () => {
    const sub = path.basename(file())
    const folder = folderWith({
      'main.yaml': `title: T\ndescription: D\nprompt: Go\nsub_recipes: [{ name: counter, path: counter.yaml }]\n`,
      'counter.yaml': readFileSync(file(), 'utf8'),
    })
    expect(sub).toBe('recipe.yaml')
    const { outcome, nodes } = await runRecipe(path.join(folder, 'main.yaml'), (request) => {
      if (request.path.length > 1) return final({ count: 7 })
      const result = lastResult(request)
      return result ?? calling('subagent', { subrecipe: 'counter', summary: false })
    })

    expect(outcome.text).toBe('{"count":7}')
    const [task] = nodes.filter(({ kind }) => kind === 'task')
    expect(task?.output).toMatchObject({ value: { count: 7 }, metadata: { outcome: { output: { count: 7 } } } })
  })

  test.each(['{}', 'true', '[]'])('the schema %s is refused when it is read', async (schema) => {
    await expect(recipeAgent(recipe(`prompt: x\nresponse: { json_schema: ${schema} }\n`))).rejects.toThrow(/schema/)
  })
})

describe('checks decide whether an answer is one', () => {
  const COUNT = 'printf x >> tries; '

  test('a recipe that fails twice and then passes: begun again each time, on_failure in between, in the folder of the session', async () => {
    const cwd = folderWith({ 'seed.txt': 's' })
    const file = recipe(
      `prompt: Fix it.\nretry:\n  max_retries: 5\n  checks: [{ type: shell, command: '${COUNT}test "$(cat tries)" = xxx' }]\n  on_failure: 'echo cleaned >> log'\n`,
    )
    const { outcome, model, events, nodes } = await runRecipe(file, (_, call) => `try ${call + 1}`, {
      cwd,
      grant: EXEC,
    })

    expect(outcome).toMatchObject({ status: 'completed', text: 'try 3', modelCalls: 3 })
    expect(readFileSync(path.join(cwd, 'log'), 'utf8')).toBe('cleaned\ncleaned\n')
    expect(events.filter(({ type }) => type === 'retry')).toMatchObject([{ attempt: 1 }, { attempt: 2 }])
    // Each try begins from the input alone.
    expect(model.requests.map(({ messages }) => messages.filter(({ role }) => role !== 'system'))).toEqual(
      Array.from({ length: 3 }, () => [{ role: 'user', content: 'Fix it.' }]),
    )
    expect(nodes.map(({ kind, input }) => input.call?.name ?? kind)).toEqual([
      ...['user_message', 'agent_message', 'recipe__check', 'recipe__on_failure'],
      ...['agent_message', 'recipe__check', 'recipe__on_failure', 'agent_message', 'recipe__check'],
    ])
  })

  test('when it never passes the run has failed: retries_exhausted, with what was said', async () => {
    const cwd = folderWith()
    const file = recipe(
      'prompt: x\nretry: { max_retries: 2, checks: [{ type: shell, command: "echo no good; exit 3" }] }\n',
    )
    const { outcome } = await runRecipe(file, (_, call) => `try ${call + 1}`, { cwd, grant: EXEC })

    expect(outcome).toMatchObject({ status: 'failed', text: 'try 3', modelCalls: 3 })
    expect(outcome.error?.code).toBe('retries_exhausted')
    expect(outcome.error?.message).toContain('Maximum retry attempts (2) exceeded. Unable to complete the task')
    expect(outcome.error?.message).toContain('exit 3')
    expect(outcome.error?.message).toContain('no good')
  })

  test('a check that hangs is ended, and so is all it started', async () => {
    const cwd = folderWith()
    const file = recipe(
      `prompt: x\nretry: { max_retries: 2, timeout_seconds: 1, checks: [{ type: shell, command: "sleep 30 & echo $! > pid; wait" }] }\n`,
    )
    const { outcome } = await runRecipe(file, () => 'done', { cwd, grant: EXEC })

    expect(outcome.status).toBe('failed')
    expect(outcome.error?.message).toContain('Retry logic encountered an error: Shell command timed out after 1s')
    const pid = Number(readFileSync(path.join(cwd, 'pid'), 'utf8'))
    // The system ends a killed process a moment after the call that kills it.
    await vi.waitFor(() => expect(isRunning(pid)).toBe(false))
  })

  test('a failing on_failure ends it', async () => {
    const file = recipe(
      'prompt: x\nretry: { max_retries: 2, checks: [{ type: shell, command: "false" }], on_failure: "exit 7" }\n',
    )
    const { outcome } = await runRecipe(file, () => 'done', { cwd: folderWith(), grant: EXEC })

    expect(outcome.error?.message).toContain('On_failure command failed: exit 7 (exit 7)')
  })

  test('all checks in order; the first that fails decides', async () => {
    const cwd = folderWith()
    const checks = ['echo 1 >> log', 'echo 2 >> log; exit 1', 'echo 3 >> log'].map(
      (command) => `{ type: shell, command: "${command}" }`,
    )
    const file = recipe(`prompt: x\nretry: { max_retries: 1, checks: [${checks.join(', ')}] }\n`)
    await runRecipe(file, () => 'done', { cwd, grant: EXEC })

    expect(readFileSync(path.join(cwd, 'log'), 'utf8')).toBe('1\n2\n1\n2\n')
  })

  test('without a rule for programs no check runs and the answer is not taken for one', async () => {
    const cwd = folderWith()
    const file = recipe('prompt: x\nretry: { max_retries: 1, checks: [{ type: shell, command: "touch ran" }] }\n')
    const { outcome } = await runRecipe(file, () => 'done', { cwd })

    expect(outcome).toMatchObject({ status: 'denied', output: null })
    expect(outcome.error?.message).toContain('exec:touch ran is not allowed here')
    expect(existsSync(path.join(cwd, 'ran'))).toBe(false)
  })

  test('a person may be asked first, and says no', async () => {
    const cwd = folderWith()
    const file = recipe('prompt: x\nretry: { max_retries: 1, checks: [{ type: shell, command: "touch ran" }] }\n')
    const grant = { ...EXEC, ask: ['exec:*'] }
    const run = async (allow: boolean) => {
      await using runtime = createRuntime({ model: scriptedModel(['done']) })
      const started = runtime.run(await recipeAgent(file, { cwd, grant }))
      for await (const event of started) {
        if (event.type === 'approval-request') await runtime.answer(event.nodeId ?? '', { allow })
      }
      return (await started.result).status
    }

    expect(await run(false)).toBe('denied')
    expect(existsSync(path.join(cwd, 'ran'))).toBe(false)
    expect(await run(true)).toBe('completed')
    expect(existsSync(path.join(cwd, 'ran'))).toBe(true)
  })

  test('I11 a yes for once runs a check once, however many there are, also the same one twice', async () => {
    const cwd = folderWith()
    const checks = ['first', 'second', 'second', 'third'].map(
      (word) => `{ type: shell, command: "echo ${word} >> ran" }`,
    )
    const file = recipe(`prompt: x\nretry: { max_retries: 1, checks: [${checks.join(', ')}] }\n`)
    await using runtime = createRuntime({ model: scriptedModel(['done']) })
    const started = runtime.run(await recipeAgent(file, { cwd, grant: { ...EXEC, ask: ['exec:*'] } }))
    const asked: string[] = []
    for await (const event of started) {
      if (event.type !== 'approval-request') continue
      expect(existsSync(path.join(cwd, 'ran'))).toBe(false)
      asked.push(event.request)
      await runtime.answer(event.nodeId ?? '', { allow: true })
    }

    expect((await started.result).status).toBe('completed')
    expect(asked).toEqual(['first', 'second', 'second', 'third'].map((word) => `exec:sh -c 'echo ${word} >> ran'`))
    expect(readFileSync(path.join(cwd, 'ran'), 'utf8')).toBe('first\nsecond\nsecond\nthird\n')
  })

  test('together with a response schema the checks run, and the value is the answer', async () => {
    const cwd = folderWith()
    const file = recipe(
      `prompt: x\nresponse: { json_schema: { type: object, properties: { n: { type: number } }, required: [n] } }\nretry: { max_retries: 3, checks: [{ type: shell, command: '${COUNT}test "$(cat tries)" = xx' }] }\n`,
    )
    const { outcome } = await runRecipe(file, (_, call) => calling('recipe__final_output', { n: call }), {
      cwd,
      grant: EXEC,
    })

    expect(outcome).toMatchObject({ status: 'completed', output: { n: 1 }, text: '{"n":1}', modelCalls: 2 })
  })

  test('a model that calls the check itself is refused', async () => {
    const file = recipe(
      'prompt: x\nextensions: []\nretry: { max_retries: 1, checks: [{ type: shell, command: "true" }] }\n',
    )
    const { outcome, model } = await runRecipe(
      file,
      (request) => (resultsIn(request).length === 0 ? calling('recipe__check') : `got: ${lastResult(request)}`),
      { cwd: folderWith(), grant: EXEC },
    )

    expect(outcome.text).toBe('got: There is no tool "recipe__check" to call.')
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['subagent'])
  })

  test('a model that calls no tool reads only those that it was offered', async () => {
    const file = recipe(
      'prompt: x\nextensions: []\nretry: { max_retries: 1, checks: [{ type: shell, command: "true" }], on_failure: "true" }\n',
    )
    const { outcome } = await runRecipe(
      file,
      (request) => (resultsIn(request).length === 0 ? calling('frobnicate_all') : `got: ${lastResult(request)}`),
      { cwd: folderWith(), grant: EXEC },
    )

    expect(outcome.text).toBe('got: There is no tool "frobnicate_all". There are: subagent.')
  })

  test('the checks of a sub-recipe are its own; its failure is told to the host', async () => {
    const cwd = folderWith({
      'main.yaml': 'title: T\ndescription: D\nprompt: Go\nsub_recipes: [{ name: fix, path: fix.yaml }]\n',
      'fix.yaml':
        'title: T\ndescription: D\nprompt: Fix\nretry: { max_retries: 1, checks: [{ type: shell, command: "false" }] }\n',
    })
    const { outcome } = await runRecipe(
      path.join(cwd, 'main.yaml'),
      (request) =>
        request.path.length > 1 ? 'fixed' : (lastResult(request) ?? calling('subagent', { subrecipe: 'fix' })),
      { cwd, grant: EXEC },
    )

    expect(outcome.text).toContain('Failed to execute task: Maximum retry attempts (1) exceeded.')
  })

  test('turns end it too', async () => {
    const file = recipe('prompt: x\nretry: { max_retries: 9, checks: [{ type: shell, command: "false" }] }\n')
    const { outcome } = await runRecipe(file, () => 'done', {
      cwd: folderWith(),
      grant: EXEC,
      budget: { modelCalls: 2 },
    })

    expect(outcome).toMatchObject({ status: 'max_turns', modelCalls: 2 })
  })

  test('later turns of the conversation see only the try that passed', async () => {
    const cwd = folderWith()
    const file = recipe(
      `prompt: x\nretry: { max_retries: 3, checks: [{ type: shell, command: '${COUNT}test "$(cat tries)" != x' }] }\n`,
    )
    const model = scriptedModel((_, call) => `answer ${call}`)
    await using runtime = createRuntime({ model })
    const chat = await recipeAgent(file, { cwd, grant: EXEC })
    const { conversationId } = await runtime.run(chat).result
    await runtime.run(chat, 'And now?', { conversationId }).result

    expect(model.requests.at(-1)?.messages.map(({ role, content }) => `${role}: ${String(content)}`)).toEqual([
      'user: x',
      'assistant: answer 1',
      'user: And now?',
    ])
  })
})

describe.each(stores)('the rows keep all of it, on %s', (_, create) => {
  const world = useWorld(create)

  test('another process goes on without the file, its checks and its final output included', async () => {
    const cwd = folderWith()
    const folder = folderWith({
      'r.yaml':
        'title: T\ndescription: D\ninstructions: You count.\nprompt: Count.\nresponse: { json_schema: { type: object, properties: { n: { type: number } }, required: [n] } }\nretry: { max_retries: 3, checks: [{ type: shell, command: "touch checked" }] }\n',
    })
    const first = world.start({ model: scriptedModel(() => ({ text: 'never', delayMs: 60_000 })), engine: QUICK })
    const run = first.runtime.run(await recipeAgent(path.join(folder, 'r.yaml'), { cwd, grant: EXEC }))
    await untilRunning(world.store, run.id)
    await first.kill()
    rmSync(folder, { recursive: true })

    const model = scriptedModel(() => calling('recipe__final_output', { n: 4 }))
    const { runtime } = world.start({ model, engine: QUICK })
    await runtime.resume()
    const outcome = await (await runtime.attach(run.id)).result

    expect(outcome).toMatchObject({ status: 'completed', output: { n: 4 } })
    expect(existsSync(path.join(cwd, 'checked'))).toBe(true)
    expect(systemOf(model.requests[0] ?? { messages: [] })).toContain('You count.')
    expect(world.store.conversation(run.conversationId)?.agent).toMatchObject({
      name: 'r',
      code: '',
      inline: { form: 1 },
    })
  })

  test('a process that dies in a check: the check is made again; one that dies in on_failure: that is not (I4)', async () => {
    const cwd = folderWith()
    const slow = (file: string) => `echo x >> ${file}; test "$(cat ${file} | wc -l)" -gt 1 || sleep 60`
    const start = async (retry: string) => {
      const source = recipe(`prompt: Go\nretry: { max_retries: 1, ${retry} }\n`)
      const first = world.start({ model: scriptedModel(() => 'done'), engine: QUICK })
      const run = first.runtime.run(await recipeAgent(source, { cwd, grant: EXEC }))
      const ran = retry.includes('on_failure') ? 'cleaned' : 'checked'
      while (!existsSync(path.join(cwd, ran))) await new Promise((resolve) => setTimeout(resolve, 5))
      await first.kill()
      const { runtime } = world.start({ model: scriptedModel(() => 'done'), engine: QUICK })
      await runtime.resume()
      const { status } = await (await runtime.attach(run.id)).result
      return { status, times: readFileSync(path.join(cwd, ran), 'utf8').trim().split('\n').length }
    }

    expect(await start(`checks: [{ type: shell, command: '${slow('checked')}' }]`)).toEqual({
      status: 'completed',
      times: 2,
    })
    expect(await start(`checks: [{ type: shell, command: 'false' }], on_failure: '${slow('cleaned')}'`)).toEqual({
      status: 'uncertain',
      times: 1,
    })
  })

  test('a child in words goes on too, with its host made again from its row', async () => {
    const file = recipe('prompt: Go\nextensions: [{ type: builtin, name: todo }]\n')
    const script: Script = (request) => {
      if (request.path.length > 1) return { text: 'never', delayMs: 60_000 }
      return lastResult(request) ?? calling('subagent', { instructions: 'Do a part.', settings: { temperature: 0.4 } })
    }
    const first = world.start({ model: scriptedModel(script), engine: QUICK })
    const run = first.runtime.run(await recipeAgent(file))
    await untilRunning(world.store, await childOf(world.store, run.id))
    await first.kill()

    const model = scriptedModel((request) => (request.path.length > 1 ? 'part done' : (lastResult(request) ?? 'lost')))
    const { runtime } = world.start({ model, engine: QUICK })
    await runtime.resume()

    expect(await (await runtime.attach(run.id)).result).toMatchObject({
      status: 'completed',
      text: 'part done',
      children: 1,
    })
    const [child] = childRequests(model)
    expect(child?.settings.temperature).toBe(0.4)
    expect(child?.tools.map(({ name }) => name).some((name) => name.startsWith('todo'))).toBe(true)
  })
})

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

async function untilRunning(store: LocalStore, runId: string): Promise<void> {
  while (!store.nodesOf(runId).some(({ state, kind }) => state === 'running' && kind === 'agent_message')) {
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

async function childOf(store: LocalStore, runId: string): Promise<string> {
  for (;;) {
    const [link] = store.linksOf(runId)
    if (link !== undefined) return link.id
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

describe('modes', () => {
  const file = () => recipe('prompt: Go\nextensions: [{ type: builtin, name: todo }]\n')

  test('chat has no tools; approve asks for each, also for those of a child', async () => {
    const chat = await runRecipe(file(), ['ok'], { mode: 'chat' })
    expect(chat.model.requests[0]?.tools).toEqual([])

    const model = scriptedModel((request) => {
      if (lastResult(request) !== undefined) return `heard: ${lastResult(request)}`
      return request.path.length > 1
        ? calling('todo_write', { content: 'a' })
        : calling('subagent', { instructions: 'x' })
    })
    await using runtime = createRuntime({ model })
    const run = runtime.run(await recipeAgent(file(), { mode: 'approve' }))
    const asked: string[] = []
    for await (const event of run) {
      if (event.type !== 'approval-request') continue
      asked.push(`${event.path.join('/')} ${event.request}`)
      await runtime.answer(event.nodeId ?? '', { allow: event.path.length === 1, reason: 'not now' })
    }
    const { text } = await run.result

    expect(asked[0]).toBe('recipe tool:subagent')
    expect(asked[1]).toMatch(/^recipe\/subagent tool:todo/)
    expect(text).toContain('not now')
  })

  test('auto adds nothing; smart_approve asks for changed files, programs and hosts; chat has no tools', async () => {
    const use = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']
    await using runtime = createRuntime()
    const requests = ['tool:x', 'file.read:/workspace/a', 'file.write:/workspace/a', 'file.delete:/workspace/a']
    const verdicts = async (mode: 'auto' | 'approve' | 'smart_approve' | 'chat') => {
      const who = await recipeAgent(file(), { mode, grant: { use } })
      const all = [...requests, 'exec:ls', 'net:a.test'].map((request) => runtime.explain(who, request))
      return (await Promise.all(all)).map(({ verdict }) => verdict)
    }

    expect(await verdicts('auto')).toEqual(['allow', 'allow', 'allow', 'allow', 'allow', 'allow'])
    expect(await verdicts('smart_approve')).toEqual(['allow', 'allow', 'ask', 'ask', 'ask', 'ask'])
    expect((await verdicts('approve'))[0]).toBe('ask')
    expect((await verdicts('chat'))[0]).toBe('deny')
  })

  test('the layers are plain grants', () => {
    expect(Object.keys(MODES)).toEqual(['auto', 'approve', 'smart_approve', 'chat'])
    expect(MODES.smart_approve.ask).toEqual(['file.write:**', 'file.delete:**', 'exec:*', 'net:*'])
  })

  test.each<[string, object, string, boolean]>([
    ['auto', {}, 'own/model', true],
    ['smart_approve', { mode: 'smart_approve' }, 'own/model', false],
    ['a gemini model', {}, 'google/gemini-3-pro', false],
    ['a model with gemini inside', {}, 'own/not-gemini', true],
    ['no extension', { bare: true }, 'own/model', false],
  ])('compat aster, %s', async (_, { bare = false, ...options }: { bare?: boolean; mode?: 'auto' }, id, isOffered) => {
    const model = scriptedModel(['ok'], id)
    await using runtime = createRuntime({ model })
    const source = bare ? recipe('prompt: Go\nextensions: []\n') : file()
    await runtime.run(await recipeAgent(source, { ...options, subagents: { compat: 'aster' } })).result

    expect(model.requests[0]?.tools.some(({ name }) => name === 'subagent')).toBe(isOffered)
  })
})
