import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent, createRuntime, type Grant } from 'legate'
import { convert, loadAgentFile, loadDefinition, openSubagents, recipeAgent } from 'legate/recipe'
import { sqliteStore } from 'legate/store/sqlite'
import { type Script, scriptedModel } from 'legate/testing'
import { diskFiles } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { type Call, childRequests, delegating, resultsIn, subagent } from './open/support.ts'
import { folderWith, refusalOf } from './support/folder.ts'

/** What the command line gives a file, without the questions. */
const WORKSPACE: Grant = { use: ['tool:*', 'agent:*', 'model:*', 'file.*:/workspace/**', 'exec:*', 'net:*'] }

const FILE = '.claude/agents/helper.md'
const shell = (command: string): Call => ({ name: 'shell', input: { command } })
const write = (file: string, content = 'x'): Call => ({
  name: 'write_file',
  input: { path: `/workspace/${file}`, content },
})

interface Program {
  readonly name: string
  readonly text: string
}

/** A program in the folder of hooks that writes down what it is given, and then does this. */
function program(name: string, ...lines: readonly string[]): Program {
  return { name, text: `#!/bin/sh\ncat >> "$CLAUDE_PROJECT_DIR/${name}.seen"\n${lines.join('\n')}\n` }
}

const hook = (event: string, matcher: string, command: string, more = '') =>
  `  ${event}:\n    - matcher: ${JSON.stringify(matcher)}\n      hooks:\n        - type: command\n          command: ${JSON.stringify(command)}\n${more}`

function markdown(fields: string): string {
  return `---\nname: helper\ndescription: Helps\n${fields}\n---\n\nYou help.\n`
}

function project(fields: string, programs: readonly Program[] = []): string {
  const folder = folderWith({ [FILE]: markdown(fields), 'notes.txt': 'blue\n' })
  mkdirSync(path.join(folder, 'hooks'))
  for (const { name, text } of programs) {
    writeFileSync(path.join(folder, 'hooks', name), text)
    chmodSync(path.join(folder, 'hooks', name), 0o755)
  }
  return folder
}

/** What a hook was given, one line for each time it ran. */
function seenBy(folder: string, name: string): readonly Record<string, never>[] {
  const file = path.join(folder, `${name}.seen`)
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, never>)
}

async function runFile(
  folder: string,
  calls: readonly Call[],
  { grant = WORKSPACE, script }: { grant?: Grant; script?: Script } = {},
) {
  const model = scriptedModel(script ?? ((request) => (resultsIn(request).length === 0 ? { calls } : 'Done.')))
  await using runtime = createRuntime({ model, files: diskFiles({ workspace: folder }) })
  const file = await recipeAgent(path.join(folder, FILE), { cwd: folder, grant })
  const outcome = await runtime.run(file, 'Go.').result
  return { outcome, model, results: resultsIn(model.requests[1] ?? { messages: [] }) }
}

describe('a hook before calls', () => {
  test('is given the call in the words of Claude Code, and refuses it with exit code 2', async () => {
    const guard = program('guard', 'echo "no removal here" >&2', 'exit 2')
    const folder = project(`hooks:\n${hook('PreToolUse', 'Bash', './hooks/guard')}`, [guard])
    const { results } = await runFile(folder, [
      shell('touch made.txt'),
      { name: 'read_text_file', input: { path: 'notes.txt' } },
    ])

    expect(results[0]).toBe('Refused: no removal here')
    expect(results[1]).toContain('blue')
    expect(existsSync(path.join(folder, 'made.txt'))).toBe(false)
    expect(seenBy(folder, 'guard')).toEqual([
      {
        session_id: expect.stringMatching(/^[\w-]{36}$/),
        cwd: folder,
        permission_mode: 'default',
        hook_event_name: 'PreToolUse',
        tool_name: 'Bash',
        tool_input: { command: 'touch made.txt' },
        tool_use_id: expect.any(String),
      },
    ])
  })

  test('sees tools of files with real paths, deletions and each of several edits', async () => {
    const folder = project(`hooks:\n${hook('PreToolUse', 'Edit|Write|Bash', './hooks/guard')}`, [
      program('guard', 'exit 0'),
    ])
    const edits = [
      { oldText: 'blue', newText: 'red' },
      { oldText: '\n', newText: '!\n', replaceAll: true },
    ]
    await runFile(folder, [
      { name: 'edit_file', input: { path: '/workspace/notes.txt', edits } },
      write('new.txt'),
      { name: 'delete_file', input: { path: '/workspace/new.txt' } },
    ])

    const seen = seenBy(folder, 'guard').map(({ tool_name: name, tool_input: input }) => [name, input])
    expect(seen).toHaveLength(5)
    // Calls of one answer run beside each other.
    expect(seen).toEqual(
      expect.arrayContaining([
        ['Edit', { file_path: `${folder}/notes.txt`, old_string: 'blue', new_string: 'red', replace_all: false }],
        ['Edit', { file_path: `${folder}/notes.txt`, old_string: '\n', new_string: '!\n', replace_all: true }],
        ['Write', { file_path: `${folder}/new.txt`, content: 'x' }],
        ['Bash', { command: `rm -- ${folder}/new.txt` }],
        ['Write', { file_path: `${folder}/new.txt`, content: '' }],
      ]),
    )
    expect(readFileSync(path.join(folder, 'notes.txt'), 'utf8')).toBe('red!\n')
  })

  test.each([
    [
      '`permissionDecision: deny`',
      { hookSpecificOutput: { permissionDecision: 'deny', permissionDecisionReason: 'not today' } },
    ],
    ['`decision: block`', { decision: 'block', reason: 'not today' }],
    ['`continue: false`', { continue: false, stopReason: 'not today' }],
  ])('refuses with %s', async (_, said) => {
    const folder = project(`hooks:\n${hook('PreToolUse', '*', './hooks/guard')}`, [
      program('guard', `echo '${JSON.stringify(said)}'`),
    ])
    const { results } = await runFile(folder, [write('new.txt')])

    expect(results).toEqual(['Refused: not today'])
    expect(existsSync(path.join(folder, 'new.txt'))).toBe(false)
  })

  test('allows nothing that is denied, and what it changes is decided anew', async () => {
    const allow = {
      hookSpecificOutput: {
        hookEventName: 'PreToolUse',
        permissionDecision: 'allow',
        updatedInput: { file_path: '/etc/made-by-hook', content: 'y' },
      },
    }
    const folder = project(`hooks:\n${hook('PreToolUse', 'Write', './hooks/guard')}`, [
      program('guard', `echo '${JSON.stringify(allow)}'`),
    ])
    const { results } = await runFile(folder, [write('new.txt')])

    expect(results[0]).toMatch(/^write_file is not allowed here: .*\/etc\/made-by-hook/)
    expect(existsSync(path.join(folder, 'new.txt'))).toBe(false)
  })

  test('a hook that says `allow` is told in the events of the run, once', async () => {
    const allow = { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow' } }
    const folder = project(`hooks:\n${hook('PreToolUse', 'Write', './hooks/guard')}`, [
      program('guard', `echo '${JSON.stringify(allow)}'`),
    ])
    const model = scriptedModel((request) =>
      resultsIn(request).length === 0 ? { calls: [write('new.txt'), write('newer.txt')] } : 'Done.',
    )
    await using runtime = createRuntime({ model, files: diskFiles({ workspace: folder }) })
    const file = await recipeAgent(path.join(folder, FILE), { cwd: folder, grant: WORKSPACE })
    const warningsOf = async () => {
      const messages: string[] = []
      for await (const event of runtime.run(file, 'Go.')) if (event.type === 'warning') messages.push(event.message)
      return messages
    }

    const told = ['The hook ./hooks/guard allows a call. That is ignored: a hook may only refuse.']
    expect(await warningsOf()).toEqual(told)
    expect(await warningsOf()).toEqual(told)
    expect(seenBy(folder, 'guard')).toHaveLength(4)
  })

  test('changes a command, and the changed one runs', async () => {
    const changed = { hookSpecificOutput: { updatedInput: { command: 'echo changed' } } }
    const folder = project(`hooks:\n${hook('PreToolUse', 'Bash', './hooks/guard')}`, [
      program('guard', `echo '${JSON.stringify(changed)}'`),
    ])
    const { results } = await runFile(folder, [shell('echo first')])

    expect(results).toEqual(['changed'])
  })

  test.each([
    ['crashes', 'exit 1', 'exit code 1'],
    ['writes JSON that is none', "echo '{no'", 'its JSON cannot be read'],
    ['decides with a word nobody knows', `echo '{"decision":"perhaps"}'`, 'its decision "perhaps" is not known'],
    ['takes too long', 'sleep 30', 'it took longer than 1 s'],
  ])('a hook that %s refuses the call and says so', async (_, line, why) => {
    const folder = project(`hooks:\n${hook('PreToolUse', 'Write', './hooks/guard', '          timeout: 1\n')}`, [
      program('guard', line),
    ])
    const { results } = await runFile(folder, [write('new.txt')])

    expect(results[0]).toMatch(/^Refused: the hook \.\/hooks\/guard failed, which counts as a no: /)
    expect(results[0]).toContain(why)
    expect(existsSync(path.join(folder, 'new.txt'))).toBe(false)
  })

  test('a hook that does not exist, or may not start, refuses the call', async () => {
    const folder = project(`hooks:\n${hook('PreToolUse', 'Write', './hooks/nowhere')}`)
    const gone = await runFile(folder, [write('new.txt')])
    const grant = { ...WORKSPACE, deny: ['exec:*'] }
    const denied = await runFile(folder, [write('new.txt')], { grant })

    expect(gone.results[0]).toMatch(/failed, which counts as a no: it ended with exit code 127/)
    expect(denied.results[0]).toMatch(
      /^Refused: the hook \.\/hooks\/nowhere does not start: exec:\.\/hooks\/nowhere is not allowed here/,
    )
    expect(existsSync(path.join(folder, 'new.txt'))).toBe(false)
  })

  test('runs where the file itself may start no programs, and lets the agent start none', async () => {
    const guard = program('guard', 'exit 0')
    const folder = project(
      `tools: Write\npermissionMode: default\ndisallowedTools: Bash\nhooks:\n${hook('PreToolUse', '*', './hooks/guard')}`,
      [guard],
    )
    const { results } = await runFile(folder, [write('new.txt'), shell('./hooks/guard')])

    expect(results[0]).toContain('wrote 1 bytes')
    expect(results[1]).toMatch(/^shell is not allowed here/)
    expect(seenBy(folder, 'guard')).toHaveLength(2)
  })

  test('asks a person, once for each question', async () => {
    const said = { hookSpecificOutput: { permissionDecision: 'ask', permissionDecisionReason: 'is it fine?' } }
    const folder = project(`hooks:\n${hook('PreToolUse', 'Write', './hooks/guard')}`, [
      program('guard', `echo '${JSON.stringify(said)}'`),
    ])
    const model = scriptedModel((request) =>
      resultsIn(request).length === 0 ? { calls: [write('new.txt')] } : 'Done.',
    )
    await using runtime = createRuntime({ model, files: diskFiles({ workspace: folder }) })
    const run = runtime.run(await recipeAgent(path.join(folder, FILE), { cwd: folder, grant: WORKSPACE }), 'Go.')
    const asked: unknown[] = []
    for await (const event of run) {
      if (event.type !== 'approval-request' || event.nodeId === null) continue
      asked.push([event.request, event.reason])
      await runtime.answer(event.nodeId, { allow: true, by: 'ann' })
    }

    expect(asked).toEqual([['tool:write_file', 'the hook ./hooks/guard asks: is it fine?']])
    expect(existsSync(path.join(folder, 'new.txt'))).toBe(true)
  })

  test('a hook that asks refuses where nobody is asked', async () => {
    const said = { hookSpecificOutput: { permissionDecision: 'ask' } }
    const folder = project(`permissionMode: dontAsk\nhooks:\n${hook('PreToolUse', 'Write', './hooks/guard')}`, [
      program('guard', `echo '${JSON.stringify(said)}'`),
    ])
    const { results } = await runFile(folder, [write('new.txt')])

    expect(results[0]).toMatch(/^Refused: the hook \.\/hooks\/guard asks.* denies what would be asked for/)
    expect(seenBy(folder, 'guard')[0]).toMatchObject({ permission_mode: 'dontAsk' })
  })

  test.each([
    ['', ['Bash', 'Write']],
    ['Bash|Write', ['Bash', 'Write']],
    ['Write, Edit', ['Write']],
    ['Edit', []],
    ['Bas', []],
    ['W.*', ['Write']],
    ['^(Bash|Edit)$', ['Bash']],
    ['(a+)+$', []],
  ])('looks at the tools that the matcher %j names', async (matcher, names) => {
    const folder = project(`hooks:\n${hook('PreToolUse', matcher, './hooks/guard')}`, [program('guard', 'exit 0')])
    await runFile(folder, [shell('true'), write('new.txt')])

    expect(
      seenBy(folder, 'guard')
        .map(({ tool_name: name }) => String(name))
        .toSorted(),
    ).toEqual(names)
  })
})

describe('a hook after calls', () => {
  test('is given the result, and its objection stands beside it', async () => {
    const guard = program('guard', 'echo "line 1: missing semicolon" >&2', 'exit 2')
    const folder = project(`hooks:\n${hook('PostToolUse', 'Write|Bash', './hooks/guard')}`, [guard])
    const { results } = await runFile(folder, [write('new.txt'), shell('echo hi')])

    expect(results[0]).toBe(
      'wrote 1 bytes to /workspace/new.txt\n\nThe call has been made, and the hook ./hooks/guard objects to it: line 1: missing semicolon',
    )
    const seen = seenBy(folder, 'guard').toSorted((a, b) =>
      String(b['tool_name']).localeCompare(String(a['tool_name'])),
    )
    expect(seen).toMatchObject([
      {
        hook_event_name: 'PostToolUse',
        tool_name: 'Write',
        tool_response: { filePath: `${folder}/new.txt`, success: true },
      },
      { tool_name: 'Bash', tool_response: { stdout: 'hi', stderr: '' } },
    ])
  })

  test('adds words', async () => {
    const said = { hookSpecificOutput: { additionalContext: 'Mind the style.' } }
    const folder = project(`hooks:\n${hook('PostToolUse', 'Write', './hooks/guard')}`, [
      program('guard', `echo '${JSON.stringify(said)}'`),
    ])

    expect((await runFile(folder, [write('new.txt')])).results).toEqual([
      'wrote 1 bytes to /workspace/new.txt\n\nMind the style.',
    ])
  })

  test.each([
    ['fails', 'exit 1'],
    ['changes the result', `echo '{"hookSpecificOutput":{"updatedToolOutput":"y"}}'`],
  ])('a hook that %s withholds the result, and the call counts as made', async (_, line) => {
    const folder = project(`hooks:\n${hook('PostToolUse', 'Bash', './hooks/guard')}`, [program('guard', line)])
    const { results } = await runFile(folder, [shell('echo secret')])

    expect(results[0]).toMatch(/^The result of shell is withheld: .*The call itself has been made\.$/)
    expect(results[0]).not.toContain('secret')
  })

  test('a hook that may not start refuses the call before it is made', async () => {
    const folder = project(`hooks:\n${hook('PostToolUse', 'Write', './hooks/guard')}`)
    const { results } = await runFile(folder, [write('new.txt')], { grant: { ...WORKSPACE, deny: ['exec:*'] } })

    expect(results[0]).toMatch(/^Refused: the hook/)
    expect(existsSync(path.join(folder, 'new.txt'))).toBe(false)
  })
})

describe('a hook at the end', () => {
  const once = program(
    'stop',
    'if [ -e seen-once ]; then exit 0; fi',
    'touch seen-once',
    'echo "write the tests too" >&2',
    'exit 2',
  )

  test('lets the agent go on with its reason, and then lets it end', async () => {
    const folder = project(`hooks:\n${hook('Stop', '', './hooks/stop')}`, [once])
    const { outcome, model } = await runFile(folder, [], { script: (_, at) => `Answer ${at + 1}.` })

    expect(outcome).toMatchObject({ status: 'completed', text: 'Answer 2.' })
    expect(model.requests[1]?.messages.slice(-2)).toEqual([
      { role: 'assistant', content: 'Answer 1.', calls: [] },
      { role: 'user', content: 'write the tests too' },
    ])
    expect(seenBy(folder, 'stop')).toMatchObject([
      { hook_event_name: 'Stop', stop_hook_active: false, last_assistant_message: 'Answer 1.' },
      { hook_event_name: 'Stop', stop_hook_active: true, last_assistant_message: 'Answer 2.' },
    ])
  })

  test('a hook that never lets go ends with the limit of the run', async () => {
    const folder = project(`maxTurns: 3\nhooks:\n${hook('Stop', '', './hooks/stop')}`, [program('stop', 'exit 2')])
    const { outcome, model } = await runFile(folder, [], { script: () => 'Done.' })

    expect(outcome.status).not.toBe('completed')
    expect(model.requests.length).toBeLessThanOrEqual(4)
  })

  test('a hook that fails fails the run, and says which hook', async () => {
    const folder = project(`hooks:\n${hook('Stop', '', './hooks/stop')}`, [program('stop', 'exit 3')])
    const { outcome } = await runFile(folder, [], { script: () => 'Done.' })

    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'hook_failed', message: expect.stringContaining('./hooks/stop') },
    })
  })
})

describe('the hooks of a subagent', () => {
  /** A host in code starts the agent of the file, whose model makes these calls. */
  async function delegated(folder: string, calls: readonly Call[], child?: Script) {
    const model = delegating(
      [subagent({ subrecipe: 'helper' })],
      child ?? ((request) => (resultsIn(request).length === 0 ? { calls } : 'Done.')),
    )
    const tools = openSubagents({ subRecipes: { helper: path.join(folder, FILE) }, cwd: folder })
    const { developerTools } = await import('legate/tools')
    const host = agent({
      name: 'host',
      instructions: 'You delegate.',
      model,
      tools: { ...developerTools(), ...tools },
      grant: WORKSPACE,
    })
    await using runtime = createRuntime({ files: diskFiles({ workspace: folder }) })
    const outcome = await runtime.run(host, 'Go.').result
    return { outcome, results: resultsIn(childRequests(model)[1] ?? { messages: [] }) }
  }

  test('guard its calls and its end, and name it', async () => {
    const stop = program('stop', 'exit 0')
    const guard = program('guard', 'echo no >&2', 'exit 2')
    const fields = `hooks:\n${hook('PreToolUse', 'Write', './hooks/guard')}${hook('Stop', '', './hooks/stop')}${hook('SubagentStop', '', './hooks/stop')}`
    const folder = project(fields, [guard, stop])
    const { results } = await delegated(folder, [write('new.txt')])

    expect(results).toEqual(['Refused: no'])
    expect(seenBy(folder, 'guard')).toMatchObject([{ agent_type: 'helper', agent_id: expect.any(String) }])
    expect(seenBy(folder, 'stop').map(({ hook_event_name: name }) => name)).toEqual(['SubagentStop', 'SubagentStop'])
  })

  test('of a host guard the calls of all below it, decided by the layers of the host', async () => {
    const guard = program('guard', 'echo "not below me" >&2', 'exit 2')
    const folder = project(`hooks:\n${hook('PreToolUse', 'Write', './hooks/guard')}`, [guard])
    writeFileSync(path.join(folder, 'below.md'), '---\nname: below\ndescription: d\ntools: Write\n---\n\nWrite.\n')
    const model = scriptedModel((request) => {
      if (resultsIn(request).length > 0) return resultsIn(request).join('\n')
      return { calls: [request.path.length > 1 ? write('new.txt') : subagent({ subrecipe: 'below' })] }
    })
    await using runtime = createRuntime({ model, files: diskFiles({ workspace: folder }) })
    const file = await recipeAgent(path.join(folder, FILE), {
      cwd: folder,
      grant: WORKSPACE,
      subagents: { subRecipes: { below: path.join(folder, 'below.md') } },
    })
    await runtime.run(file, 'Go.').result

    expect(resultsIn(childRequests(model)[1] ?? { messages: [] })).toEqual(['Refused: not below me'])
    expect(existsSync(path.join(folder, 'new.txt'))).toBe(false)
    expect(seenBy(folder, 'guard')).toMatchObject([{ agent_type: 'below' }])
  })

  test('of a host guard in another process too, and look again at a call that a person has allowed (I4)', async () => {
    const folder = project(`hooks:\n${hook('PreToolUse', 'Write', './hooks/guard')}`, [program('guard', 'exit 0')])
    writeFileSync(path.join(folder, 'below.md'), '---\nname: below\ndescription: d\ntools: Write\n---\n\nWrite.\n')
    const model = scriptedModel((request) => {
      if (resultsIn(request).length > 0) return resultsIn(request).join('\n')
      return { calls: [request.path.length > 1 ? write('new.txt') : subagent({ subrecipe: 'below' })] }
    })
    const place = path.join(folderWith({}), 'runs.db')
    const runtime = () => createRuntime({ model, files: diskFiles({ workspace: folder }), store: sqliteStore(place) })
    const first = runtime()
    const file = await recipeAgent(path.join(folder, FILE), {
      cwd: folder,
      grant: { ...WORKSPACE, ask: ['file.write:**'] },
      subagents: { subRecipes: { below: path.join(folder, 'below.md') } },
    })
    const run = first.run(file, 'Go.')
    const asked = await new Promise<string>((resolve) => {
      void (async () => {
        for await (const event of run) if (event.type === 'approval-request') return resolve(event.nodeId ?? '')
      })()
    })
    await first.close()
    writeFileSync(path.join(folder, 'hooks/guard'), program('guard', 'echo "not any more" >&2', 'exit 2').text)
    await using second = runtime()
    await second.resume()
    await second.answer(asked, { allow: true, by: 'ann' })
    await second.idle()

    expect(resultsIn(childRequests(model).at(-1) ?? { messages: [] })).toEqual(['Refused: not any more'])
    expect(existsSync(path.join(folder, 'new.txt'))).toBe(false)
    expect(seenBy(folder, 'guard')).toHaveLength(2)
  })

  test('sees that an agent is started, by the old name and the new one', async () => {
    const guard = program('guard', 'exit 2')
    const folder = project(`hooks:\n${hook('PreToolUse', 'Task', './hooks/guard')}`, [guard])
    const { results } = await runFile(folder, [subagent({ instructions: 'Look.' })])

    expect(results[0]).toMatch(/^Refused: /)
    expect(seenBy(folder, 'guard')).toMatchObject([{ tool_name: 'Task', tool_input: { prompt: 'Look.' } }])
  })
})

describe('a hook that is not understood', () => {
  test.each([
    ['  PreToolUse:\n    - hooks: [{ type: prompt, prompt: "is it fine?" }]', 'hooks.PreToolUse', 'type prompt'],
    ['  PreToolUse:\n    - hooks: [{ type: http, url: "https://example.com" }]', 'hooks.PreToolUse', 'type http'],
    ['  PreToolUse:\n    - hooks: [{ type: command, command: x, if: "Bash(rm *)" }]', 'hooks.PreToolUse', '`if`'],
    [
      '  PreToolUse:\n    - matcher: "(?!Bash).*"\n      hooks: [{ type: command, command: x }]',
      'hooks.PreToolUse',
      'matcher',
    ],
    ['  PreToolUse:\n    - hooks: [{ type: command }]', 'hooks.PreToolUse', 'without a program'],
    ['  PreToolUse: ./guard.sh', 'hooks.PreToolUse', 'form'],
    ['  PermissionRequest:\n    - hooks: [{ type: command, command: x }]', 'hooks.PermissionRequest', 'moment'],
    ['  UserPromptSubmit:\n    - hooks: [{ type: command, command: x }]', 'hooks.UserPromptSubmit', 'moment'],
  ])('keeps the agent from starting: %s', async (field, named, why) => {
    const folder = project(`hooks:\n${field}`)
    const refused = { problem: expect.stringContaining(`\`${named}\` in helper.md`) }

    expect(await refusalOf(loadDefinition(path.join(folder, FILE)))).toMatchObject(refused)
    expect(await refusalOf(loadDefinition(path.join(folder, FILE)))).toMatchObject({
      problem: expect.stringContaining(why),
    })
  })

  test('a hook that only watches is left out with a warning', async () => {
    const folder = project('hooks:\n  SessionStart:\n    - hooks: [{ type: command, command: x }]')
    const { hooks, notices } = await loadDefinition(path.join(folder, FILE))

    expect(hooks).toEqual([])
    expect(notices).toMatchObject([
      { level: 'warning', message: expect.stringContaining('`hooks.SessionStart` is ignored') },
    ])
  })

  test('a longer time than ten minutes is ten minutes', async () => {
    const folder = project(`hooks:\n${hook('PreToolUse', 'Write', 'true', '          timeout: 9000\n')}`)
    const { hooks, notices } = await loadDefinition(path.join(folder, FILE))

    expect(hooks).toMatchObject([{ seconds: 600 }])
    expect(notices).toMatchObject([{ level: 'warning' }])
  })

  test('a conversion keeps hooks or is refused', async () => {
    const agent = await loadAgentFile(
      path.join(project(`hooks:\n${hook('PreToolUse', 'Write', './hooks/guard')}`), FILE),
    )
    const written = await convert(agent, 'claude')
    const again = await loadAgentFile(path.join(folderWith({ [FILE]: written.text }), FILE))

    expect(again.hooks).toEqual(agent.hooks)
    await expect(convert(agent, 'cursor')).rejects.toThrow('`hooks` cannot be said')
  })
})
