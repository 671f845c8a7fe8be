import { agent, type Grant, type Json, type Runtime, tool } from 'legate'
import { type ScriptedModel, scriptedModel } from 'legate/testing'
import { type FileDomain, fileTools, memoryFiles } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { eventsOf, only, openRuntime, resultsIn, tasksOf } from '../support/reading.ts'
import { domains } from './support/domains.ts'

const ALL: Grant = { use: ['tool:*', 'agent:*', 'file.*:/workspace/**', 'file.*:/userinput/**'] }

interface Call {
  readonly name: string
  readonly input: Json
}

/** Makes one call after the other, then answers. */
function calling(...calls: readonly Call[]): ScriptedModel {
  return scriptedModel((request) => {
    const next = calls[resultsIn(request).length]
    return next === undefined ? 'done' : { calls: [next] }
  })
}

/** What the calls of one agent gave, in their order. */
async function resultsOf(files: FileDomain, calls: readonly Call[], grant: Grant = ALL): Promise<string[]> {
  const model = calling(...calls)
  const clerk = agent({ name: 'clerk', instructions: '', model, tools: fileTools(), grant })

  const outcome = await openRuntime({ files }).run(clerk, 'go').result

  expect(outcome.status).toBe('completed')
  return resultsIn(model.requests.at(-1)).map(({ content }) => String(content))
}

async function resultOf(files: FileDomain, name: string, input: Json): Promise<string> {
  const [result = ''] = await resultsOf(files, [{ name, input }])
  return result
}

describe.each(domains)('the file tools, %s', (_name, make) => {
  async function filled(): Promise<FileDomain> {
    const domain = make()
    const files = domain.open({ use: ['file.*:/workspace/**'] })
    await files.write('/workspace/b.txt', 'one\ntwo\nthree\n')
    await files.write('/workspace/a.md', 'héllo')
    await files.write('/workspace/empty', '')
    await files.write('/workspace/src/main.ts', '1234')
    await files.write('/workspace/src/deep/util.ts', '12')
    return domain
  }

  test('reading, with and without numbers and header', async () => {
    const files = await filled()
    const read = (options: object) => resultOf(files, 'read_text_file', { path: '/workspace/b.txt', ...options })

    expect(await read({})).toBe('line_count: 3\nformat: line{N}: <content>\nline1: one\nline2: two\nline3: three')
    expect(await read({ with_line_numbers: false })).toBe('line_count: 3\nformat: raw\none\ntwo\nthree')
    expect(await read({ with_header: false })).toBe('line1: one\nline2: two\nline3: three')
    expect(await read({ with_header: false, with_line_numbers: false })).toBe('one\ntwo\nthree')
    expect(await read({ start_line: 9, with_header: false })).toBe('<empty>')
    expect(await resultOf(files, 'read_text_file', { path: '/workspace/empty' })).toBe(
      'line_count: 0\nformat: line{N}: <content>',
    )
  })

  test('a slice keeps the numbers of its lines', async () => {
    const files = await filled()

    expect(await resultOf(files, 'read_text_file', { path: '/workspace/b.txt', start_line: 2, read_lines: 1 })).toBe(
      'line_count: 1\nformat: line{N}: <content>\nline2: two',
    )
  })

  test('listings and sizes', async () => {
    const files = await filled()

    expect(await resultOf(files, 'list_directory', { path: '/workspace/' })).toBe(
      '[DIR] src/\n[FILE] a.md\n[FILE] b.txt\n[FILE] empty',
    )
    expect(await resultOf(files, 'list_directory_with_sizes', { path: '/workspace' })).toBe(
      '[DIR] src/ (size=6)\n[FILE] a.md (size=6)\n[FILE] b.txt (size=14)\n[FILE] empty (size=0)\n' +
        'total: 4 entries; files=3, dirs=1; total_size=26',
    )
    expect(await resultOf(files, 'list_directory_with_sizes', { path: '/workspace', sortBy: 'size' })).toMatch(
      /^\[DIR\] src\/.*\n\[FILE\] empty.*\n\[FILE\] a.md.*\n\[FILE\] b.txt/,
    )
    expect(await resultOf(files, 'list_directory', { path: '/userinput' })).toBe('<empty>')
    expect(await resultOf(files, 'list_directory', { path: '/' })).toBe('[DIR] userinput/\n[DIR] workspace/')
  })

  test('searching by a part of the path or by a pattern', async () => {
    const files = await filled()
    const search = (input: object) => resultOf(files, 'search_files', { path: '/workspace', ...input })

    expect(await search({ pattern: '*.ts' })).toBe('/workspace/src/deep/util.ts\n/workspace/src/main.ts')
    expect(await search({ pattern: 'main' })).toBe('/workspace/src/main.ts')
    expect(await search({ pattern: '*.ts', excludePatterns: ['*/deep/*'] })).toBe('/workspace/src/main.ts')
    expect(await search({ pattern: '.', excludePatterns: ['*.ts', '*.md'] })).toBe('/workspace/b.txt')
    expect(await search({ pattern: 'nothing' })).toBe('<empty>')
  })

  test('several files at once, and a failure in its place', async () => {
    const files = await filled()
    const paths = ['/workspace/a.md', '/workspace/absent', '/internal/x', '/workspace/../x']

    expect(await resultOf(files, 'read_multiple_files', { paths })).toBe(
      [
        '## /workspace/a.md\nline_count: 1\nformat: line{N}: <content>\nline1: héllo',
        '## /workspace/absent (error)\nPath not found: /workspace/absent',
        "## /internal/x (error)\nAccess denied for operation 'read' on path /internal/x: no rule of clerk allows file.read:/internal/x.",
        '## /workspace/../x (error)\nInvalid logical path: /workspace/../x. A path begins with "/" and has no "..", "//", "*", "?", "\\" or control characters.',
      ].join('\n\n'),
    )
  })

  test('writing, editing, looking and deleting', async () => {
    const files = await filled()
    const path = '/workspace/new/a.txt'

    const [wrote, edited, info, deleted, gone] = await resultsOf(files, [
      { name: 'write_file', input: { path, content: 'grüße' } },
      { name: 'edit_file', input: { path, edits: [{ oldText: 'ü', newText: 'u' }] } },
      { name: 'get_file_info', input: { path } },
      { name: 'delete_file', input: { path } },
      { name: 'read_text_file', input: { path } },
    ])

    expect(wrote).toBe(`wrote 7 bytes to ${path}`)
    expect(edited).toBe(`edited ${path} (size=6)`)
    expect(info).toMatch(/^path: \/workspace\/new\/a.txt\nsize: 6\nupdated_at: \d{4}-\d\d-\d\dT[\d:.]+Z$/)
    expect(deleted).toBe(`deleted ${path}`)
    expect(gone).toBe(`Error: Path not found: ${path}`)
  })

  test('73 and 77: what may be done where', async () => {
    const files = make()
    const calls = ['list_allowed_directories', 'fs_describe_permissions_markdown'].map((name) => ({ name, input: {} }))
    const narrow = { use: ['tool:*', 'file.read:/workspace/docs/**'] }

    expect(await resultsOf(files, calls)).toEqual([
      '/userinput/\n/workspace/',
      '/userinput/: ls, stat, read\n/workspace/: ls, stat, read, write, delete',
    ])
    expect(await resultsOf(files, calls, narrow)).toEqual(['/workspace/docs/', '/workspace/docs/: read'])
    expect(await resultsOf(files, calls, { use: ['tool:*'] })).toEqual(['<empty>', '<empty>'])
    const kept = { ...narrow, deny: ['file.*:/workspace/docs/sec/**'], ask: ['file.write:**'] }
    const rules = 'Denied: file.*:/workspace/docs/sec/**\nA person is asked first: file.write:**'
    expect(await resultsOf(files, calls, kept)).toEqual([
      `/workspace/docs/\n${rules}`,
      `/workspace/: write\n/workspace/docs/: read, write\n${rules}`,
    ])
  })

  test('long files come in pages that lead from one to the next', async () => {
    const domain = make()
    const lines = Array.from({ length: 9_000 }, (_, index) => `content of line ${index + 1}`)
    await domain.open({ use: ['file.*:/workspace/**'] }).write('/workspace/long', lines.join('\n'))
    const seen: string[] = []
    let start: number | undefined = 1
    while (start !== undefined) {
      const page = await resultOf(domain, 'read_text_file', { path: '/workspace/long', start_line: start })
      expect(Buffer.byteLength(page)).toBeLessThan(64 * 1_024)
      seen.push(...page.split('\n').flatMap((line) => /^line\d+: (.*)$/.exec(line)?.[1] ?? []))
      const next: string | undefined = /To read on: start_line=(\d+)\]$/.exec(page)?.[1]
      start = next === undefined ? undefined : Number(next)
    }

    expect(seen).toEqual(lines)
  })

  test('an endless line is cut', async () => {
    const domain = make()
    await domain.open({ use: ['file.*:/workspace/**'] }).write('/workspace/long', 'é'.repeat(200_000))

    const page = await resultOf(domain, 'read_text_file', { path: '/workspace/long' })

    expect(Buffer.byteLength(page)).toBeLessThan(64 * 1_024)
    expect(page).toMatch(/\[the line is longer: 200000 characters\]$/)
  })
})

test('arguments that are not named are refused: nothing of the domain can be replaced from outside', async () => {
  const result = await resultOf(memoryFiles(), 'read_text_file', { path: '/workspace/a', service: {}, files: {} })

  expect(result).toMatch(/^The arguments of read_text_file are wrong\./)
})

test('reads are pure, whole writes and deletes idempotent, edits effectful', () => {
  const effects = Object.entries(fileTools()).map(([name, { effect }]) => `${name} ${effect}`)

  expect(effects).toEqual([
    'read_text_file pure',
    'read_multiple_files pure',
    'get_file_info pure',
    'list_directory pure',
    'list_directory_with_sizes pure',
    'search_files pure',
    'list_allowed_directories pure',
    'fs_describe_permissions_markdown pure',
    'write_file idempotent',
    'edit_file effectful',
    'delete_file idempotent',
  ])
})

test('without createRuntime({ files }) code may name them, and fails where it uses them', async () => {
  const naming = agent({ name: 'naming', reply: async (_input, { files }) => `It has ${typeof files}.` })
  const using = agent({ name: 'using', reply: async (_input, { files }) => files.readText('/workspace/a') })

  expect((await openRuntime().run(naming, 'go').result).text).toBe('It has object.')
  expect((await openRuntime().run(using, 'go').result).error?.message).toMatch(/This runtime has no files/)
})

test('without createRuntime({ files }) the model is told so', async () => {
  const model = calling({ name: 'list_directory', input: { path: '/' } })
  const clerk = agent({ name: 'clerk', instructions: '', model, tools: fileTools() })

  await openRuntime().run(clerk, 'go').result

  expect(resultsIn(model.requests[1])[0]?.content).toMatch(/This runtime has no files/)
})

describe('I1: children and files', () => {
  const write = { name: 'write_file', input: { path: '/workspace/a', content: 'by the child' } }
  const read = { name: 'read_text_file', input: { path: '/workspace/a', with_header: false } }

  /** What a child of a host with these grants gets for reading and for writing. */
  async function childResults(runtime: Runtime, host: Grant | undefined, child: Grant | undefined): Promise<string[]> {
    const model = calling(read, write)
    const worker = agent({
      name: 'worker',
      description: 'Works.',
      instructions: '',
      model,
      tools: fileTools(),
      ...(child ? { grant: child } : {}),
    })
    const chief = agent({
      name: 'chief',
      instructions: '',
      model: calling({ name: 'work', input: { message: 'go' } }),
      subagents: { work: worker },
      ...(host ? { grant: host } : {}),
    })

    const outcome = await runtime.run(chief, 'go').result

    expect(outcome.status).toBe('completed')
    return resultsIn(model.requests.at(-1)).map(({ content }) => String(content))
  }

  const files = () => memoryFiles({ workspace: { a: 'hello' } })

  test('a denied operation in a child is a result, and the child goes on', async () => {
    const results = await childResults(openRuntime({ files: files() }), ALL, {
      use: ['tool:*', 'file.read:/workspace/**'],
    })

    expect(results).toEqual([
      'line1: hello',
      'write_file is not allowed here: no rule of worker allows file.write:/workspace/a.',
    ])
  })

  test('a host that writes can have a child that reads only, and the files are the same', async () => {
    const domain = files()
    const runtime = openRuntime({ files: domain })
    const delegate = ['tool:*', 'file.read:/workspace/**']

    const results = await childResults(runtime, { ...ALL, delegate }, { use: ['tool:*', 'file.*:**'] })

    expect(results).toEqual([
      'line1: hello',
      'write_file is not allowed here: no rule of chief allows file.write:/workspace/a.',
    ])
    expect(await domain.open(ALL).readText('/workspace/a')).toBe('hello')
  })

  test('a host may pass on what it may not use itself', async () => {
    const domain = files()
    const host = { use: ['agent:*'], delegate: ['tool:*', 'file.*:/workspace/**'] }

    const results = await childResults(openRuntime({ files: domain }), host, { use: ['tool:*', 'file.*:**'] })

    expect(results[1]).toBe('wrote 12 bytes to /workspace/a')
    expect(await domain.open(ALL).readText('/workspace/a')).toBe('by the child')
  })

  test.each([
    ['no grant anywhere', undefined, undefined],
    ['only the child has rules for files', undefined, { use: ['tool:*', 'file.*:**'] }],
    ['only the host has', ALL, undefined],
  ])('files need a rule in every layer: %s', async (_case, host, child) => {
    const domain = files()

    const results = await childResults(openRuntime({ files: domain }), host, child)

    for (const result of results) expect(result).toMatch(/is not allowed here: no rule of (chief|worker) allows file\./)
    expect(await domain.open(ALL).readText('/workspace/a')).toBe('hello')
  })

  test('the runtime’s layer binds all', async () => {
    const runtime = openRuntime({ files: files(), grant: { use: ALL.use ?? [], deny: ['file.write:/workspace/**'] } })

    const results = await childResults(runtime, ALL, ALL)

    expect(results[1]).toBe('write_file is not allowed here: the runtime denies file.write:/workspace/**.')
  })

  test('code inside a tool reaches files by the same decision, and no other', async () => {
    const domain = files()
    const model = calling({ name: 'spy', input: {} })
    const spy = tool({
      description: 'Reads what it should not.',
      input: { type: 'object' },
      execute: async (_, context) => context.files.readText('/workspace/a'),
    })

    await openRuntime({ files: domain }).run(agent({ name: 'clerk', instructions: '', model, tools: { spy } }), 'go')
      .result

    expect(resultsIn(model.requests[1])[0]?.content).toBe(
      "Error: Access denied for operation 'read' on path /workspace/a: no rule of clerk allows file.read:/workspace/a; without a grant it has no files, programs, hosts or secrets. Give it one: grant: { use: ['tool:*', 'agent:*', 'model:*', 'file.read:/workspace/**'] }.",
    )
  })
})

describe('a rule that asks', () => {
  const grant: Grant = { ...ALL, ask: ['file.write:/workspace/**', 'file.list:/workspace/**'] }
  const path = '/workspace/a'

  async function answered(calls: readonly Call[], allow: boolean) {
    const domain = memoryFiles({ workspace: { a: 'old' } })
    const model = calling(...calls)
    const runtime = openRuntime({ files: domain })
    const run = runtime.run(agent({ name: 'clerk', instructions: '', model, tools: fileTools(), grant }), 'go')
    const asked: string[] = []
    for await (const event of run) {
      if (event.type !== 'approval-request' || event.nodeId === null) continue
      asked.push(event.reason)
      await runtime.answer(event.nodeId, { allow, by: 'ann', reason: 'Not today.' })
    }
    const results = resultsIn(model.requests.at(-1)).map(({ content }) => String(content))
    return { asked, results, text: await domain.open(ALL).readText(path), tasks: tasksOf(runtime, run) }
  }

  test('waits for a person before anything happens, and then does it', async () => {
    const { asked, results, text } = await answered([{ name: 'write_file', input: { path, content: 'new' } }], true)

    expect(asked).toEqual(['clerk asks for file.write:/workspace/**'])
    expect(results).toEqual([`wrote 3 bytes to ${path}`])
    expect(text).toBe('new')
  })

  test('changes nothing when the person says no', async () => {
    const { results, text, tasks } = await answered([{ name: 'write_file', input: { path, content: 'new' } }], false)

    expect(results[0]).toContain('Not today.')
    expect(tasks.map(({ state }) => state)).toEqual(['rejected'])
    expect(text).toBe('old')
  })

  test('asks for an edit, and shows a listing that was allowed', async () => {
    const edit = { name: 'edit_file', input: { path, edits: [{ oldText: 'old', newText: 'new' }] } }
    const { asked, results, text } = await answered(
      [edit, { name: 'list_directory', input: { path: '/workspace' } }],
      true,
    )

    expect(asked).toEqual(['clerk asks for file.write:/workspace/**', 'clerk asks for file.list:/workspace/**'])
    expect(results).toEqual([`edited ${path} (size=3)`, '[FILE] a'])
    expect(text).toBe('new')
  })

  describe('and several files at once', () => {
    const paths = ['/workspace/a', '/workspace/secret', '/workspace/b', '/workspace/a', '/workspace/../x']
    const careful: Grant = { ...ALL, ask: ['file.read:/workspace/*'], deny: ['file.read:/workspace/secret'] }

    async function readAll(answers: readonly boolean[]) {
      const domain = memoryFiles({ workspace: { a: 'of a', b: 'of b', secret: 'hidden' } })
      const model = calling({ name: 'read_multiple_files', input: { paths } })
      const runtime = openRuntime({ files: domain })
      const clerk = agent({ name: 'clerk', instructions: '', model, tools: fileTools(), grant: careful })
      const asked: string[] = []
      for await (const event of runtime.run(clerk, 'go')) {
        if (event.type !== 'approval-request' || event.nodeId === null) continue
        await runtime.answer(event.nodeId, { allow: answers[asked.length] === true, by: 'ann', reason: 'Not today.' })
        asked.push(event.request)
      }
      return { asked, result: String(resultsIn(model.requests.at(-1))[0]?.content) }
    }

    test('each is asked for once before any is read; one that is denied is told of in its place', async () => {
      const { asked, result } = await readAll([true, true])

      expect(asked).toEqual(['file.read:/workspace/a', 'file.read:/workspace/b'])
      expect(result.match(/^(##|line1).*/gm)).toEqual([
        '## /workspace/a',
        'line1: of a',
        '## /workspace/secret (error)',
        '## /workspace/b',
        'line1: of b',
        '## /workspace/a',
        'line1: of a',
        '## /workspace/../x (error)',
      ])
      expect(result).toContain('clerk denies file.read:/workspace/secret')
    })

    test('a no to one of them is a no to the call', async () => {
      const { asked, result } = await readAll([true, false])

      expect(asked).toHaveLength(2)
      expect(result).toContain('Not today.')
      expect(result).not.toContain('of a')
    })
  })

  test('an answer for one file says nothing of another', async () => {
    const calls = [
      { name: 'write_file', input: { path, content: 'new' } },
      { name: 'write_file', input: { path: '/workspace/b', content: 'new' } },
    ]

    expect((await answered(calls, true)).asked).toHaveLength(2)
  })

  test('cannot be passed by code that did not say what it needs', async () => {
    const sly = tool({
      description: 'Writes.',
      input: { type: 'object' },
      execute: async (_, context) => context.files.write(path, 'new'),
    })
    const domain = memoryFiles({ workspace: { a: 'old' } })
    const model = calling({ name: 'sly', input: {} })
    const run = openRuntime({ files: domain }).run(
      agent({ name: 'clerk', instructions: '', model, tools: { sly }, grant }),
      'go',
    )

    expect(only(await eventsOf(run), 'approval-request')).toEqual([])
    expect(resultsIn(model.requests[1])[0]?.content).toMatch(
      /clerk asks for file.write.*nobody allowed it before the call/,
    )
    expect(await domain.open(ALL).readText(path)).toBe('old')
  })
})
