import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { developerTools, diskFiles, memoryFiles } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { openRuntime, resultsIn, toolNamesIn } from '../../support/reading.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { mark, noneRunning } from './support.ts'

const ALL = { use: ['tool:*', 'file.*:/workspace/**', 'file.list:/workspace', 'exec:*'] }

async function work(
  calls: readonly [name: string, input: unknown][],
  options: { grant?: object; files?: object } = {},
) {
  const folder = tempFolder()
  const workspace = path.join(folder, 'work')
  mkdirSync(path.join(workspace, 'src'), { recursive: true })
  writeFileSync(path.join(workspace, 'src/a.ts'), 'one\nTwo two\nthree\n')
  writeFileSync(path.join(workspace, 'readme.md'), 'two\n')
  const model = scriptedModel([
    ...calls.map(([name, input]) => ({ calls: [{ name, input: input as never }] })),
    'Done.',
  ])
  const grant = options.grant ?? ALL
  const who = agent({ name: 'dev', instructions: '', model, tools: developerTools(), grant })
  const files = (options.files ?? diskFiles({ workspace })) as never
  const outcome = await openRuntime({ files }).run(who, 'go').result
  const results = resultsIn(model.requests.at(-1)).map(({ content }) => String(content))
  return { results, workspace, model, outcome, folder }
}

describe('the shell', () => {
  test('runs a command in the workspace, and gives output and exit code', async () => {
    const { results, workspace } = await work([
      ['shell', { command: 'pwd' }],
      ['shell', { command: 'echo out; echo err >&2; exit 3' }],
      ['shell', { argv: ['echo', '$HOME; rm -rf x'] }],
      ['shell', { command: 'ls', cwd: 'src' }],
      ['shell', { command: 'no-such-program-here' }],
      ['shell', { command: 'true' }],
    ])

    expect(results).toEqual([
      workspace,
      'out\n[stderr]\nerr\n[exit code 3]',
      '$HOME; rm -rf x',
      'a.ts',
      expect.stringMatching(/\[exit code 127\]/),
      '[no output]',
    ])
  })

  test.each<[string, object, RegExp]>([
    ['both', { command: 'ls', argv: ['ls'] }, /either a command or an argv/],
    ['neither', {}, /either a command or an argv/],
    ['blank', { command: '  ' }, /either a command or an argv/],
    ['a long word', { argv: ['echo', 'a'.repeat(100_001)] }, /must NOT have more than 100000 characters/],
    ['long words', { argv: ['echo', ...Array(11).fill('a'.repeat(10_000))] }, /argv has at most 100000 characters/],
    ['outside', { command: 'ls', cwd: '/etc' }, /no rule of dev allows file.list:\/etc/],
    ['above', { command: 'ls', cwd: '../../..' }, /Invalid logical path|no rule of dev allows/],
    ['not there', { command: 'ls', cwd: 'nowhere' }, /Path not found/],
    ['too long', { command: 'ls', timeout_seconds: 100_000 }, /must be <= 600/],
  ])('refuses %s', async (_, input, reason) => {
    const { results } = await work([['shell', input]])

    expect(results[0]).toMatch(reason)
  })

  test('a link that leads out of the workspace is no place to run in', async () => {
    const folder = tempFolder()
    symlinkSync('/etc', path.join(folder, 'etc'))
    const { results } = await work([['shell', { command: 'ls', cwd: 'etc' }]], {
      files: diskFiles({ workspace: folder }),
    })

    expect(results[0]).toMatch(/Path not found|no plain file|Access denied/)
  })

  test('stops what takes too long, with all that it started', async () => {
    const word = mark()
    const command = `sh -c 'sleep 60; : ${word}' & sleep 60; : ${word}`
    const { results } = await work([['shell', { command, timeout_seconds: 1 }]])

    expect(results[0]).toMatch(/\[stopped after 1 s\]/)
    await noneRunning(word)
  })

  test('a program that the server leaves in the background ends with the server', async () => {
    const word = mark()
    const { results } = await work([['shell', { command: `(sleep 60; : ${word}) & echo started` }]])

    expect(results[0]).toBe('started')
    await noneRunning(word)
  })

  test('does not hand secrets of this process to commands', async () => {
    process.env['LEGATE_TEST_API_KEY'] = 'top-secret'
    process.env['LEGATE_TEST_PLAIN'] = 'seen'
    const { results } = await work([['shell', { command: 'env' }]])

    expect(results[0]).toContain('LEGATE_TEST_PLAIN=seen')
    expect(results[0]).not.toContain('top-secret')
  })

  test('output beyond all measure is cut', async () => {
    const { results } = await work([['shell', { command: 'yes | head -c 5000000' }]])

    expect(results[0]?.length).toBeLessThan(80_000)
    expect(results[0]).toMatch(/read_result/)
  })
})

describe('I2: what a grant says of commands', () => {
  const git = { use: ['tool:*', 'file.*:/workspace/**', 'file.list:/workspace', 'exec:git', 'exec:git *'] }

  test.each<[string, object, boolean]>([
    ['the program', { command: 'git --version' }, true],
    ['the program as an argv', { argv: ['git', '--version'] }, true],
    ['words in quotes', { command: 'git "--version"' }, true],
    ['another program', { command: 'ls' }, false],
    ['another one behind it', { command: 'git --version; touch pwned' }, false],
    ['another one in it', { command: 'git --version $(touch pwned)' }, false],
    ['another one on the next line', { command: 'git --version\ntouch pwned' }, false],
    ['its output in a file', { command: 'git --version > pwned' }, false],
    ['one with a name like it', { argv: ['gitx'] }, false],
    ['one that lies elsewhere', { argv: ['./git', 'x'] }, false],
    ['a shell as an argv', { argv: ['sh', '-c', 'git --version'] }, false],
  ])('%s', async (_, input, isAllowed) => {
    const { results, workspace } = await work([['shell', input]], { grant: git })

    expect(!/not allowed here/.test(results[0] ?? '')).toBe(isAllowed)
    expect(existsSync(path.join(workspace, 'pwned'))).toBe(false)
  })

  test('without any rule for programs there is no shell to be used', async () => {
    const { results } = await work([['shell', { command: 'ls' }]], {
      grant: { use: ['tool:*', 'file.*:/workspace/**'] },
    })

    expect(results[0]).toBe('shell is not allowed here: no rule of dev allows exec:ls.')
  })

  test('without a rule for the folder that it runs in no program is run', async () => {
    const calls: [string, object][] = [
      ['shell', { command: 'touch ran' }],
      ['shell', { command: 'touch ran', cwd: 'src' }],
    ]
    const { results, workspace } = await work(calls, {
      grant: { use: ['tool:*', 'exec:*', 'file.list:/workspace/src'] },
    })

    expect(results[0]).toBe('shell is not allowed here: no rule of dev allows file.list:/workspace.')
    expect(results[1]).toBe('[no output]')
    expect([existsSync(path.join(workspace, 'ran')), existsSync(path.join(workspace, 'src/ran'))]).toEqual([
      false,
      true,
    ])
  })
})

describe('files', () => {
  test('are read, written, edited, listed and searched by paths relative to the workspace', async () => {
    const { results, workspace } = await work([
      ['read_text_file', { path: 'src/a.ts', with_header: false, with_line_numbers: false }],
      ['write_file', { path: './new/b.txt', content: 'two more' }],
      ['edit_file', { path: 'src/a.ts', edits: [{ oldText: 'three', newText: '3' }] }],
      ['list_directory', { path: '.' }],
      ['search_text', { text: 'two' }],
      ['search_text', { text: 'TWO', ignore_case: true, files: '*.ts' }],
      ['search_text', { text: 'nothing like it' }],
      ['tree', {}],
      ['tree', { depth: 1 }],
      ['delete_file', { path: 'new/b.txt' }],
    ])

    expect(results).toEqual([
      'one\nTwo two\nthree',
      'wrote 8 bytes to /workspace/new/b.txt',
      'edited /workspace/src/a.ts (size=14)',
      '[DIR] new/\n[DIR] src/\n[FILE] readme.md',
      '/workspace/new/b.txt:1: two more\n/workspace/readme.md:1: two\n/workspace/src/a.ts:2: Two two',
      '/workspace/src/a.ts:2: Two two',
      '[nothing found in 3 files]',
      'new/\n  b.txt (8)\nreadme.md (4)\nsrc/\n  a.ts (14)',
      'new/\nreadme.md (4)\nsrc/',
      'deleted /workspace/new/b.txt',
    ])
    expect(readFileSync(path.join(workspace, 'src/a.ts'), 'utf8')).toBe('one\nTwo two\n3\n')
  })

  test('what may not be read is not searched, and told of', async () => {
    const grant = { use: ['tool:*', 'file.list:/workspace/**', 'file.list:/workspace', 'file.read:/workspace/src/**'] }
    const { results } = await work([['search_text', { text: 'two' }]], { grant })

    expect(results[0]).toBe(
      '/workspace/src/a.ts:2: Two two\n[1 files were not searched: not allowed, too large or no text]',
    )
  })

  test('what is not theirs stays out of reach', async () => {
    const { results } = await work([
      ['read_text_file', { path: '../secret.txt' }],
      ['read_text_file', { path: '/etc/passwd' }],
      ['write_file', { path: '~/x', content: '' }],
    ])

    expect(results[0]).toMatch(/Invalid logical path/)
    expect(results[1]).toMatch(/no rule of dev allows file.read:\/etc\/passwd/)
    expect(results[2]).toMatch(/wrote 0 bytes to \/workspace\/~\/x/)
  })

  test('where files are in memory no program can run', async () => {
    const { results } = await work([['shell', { command: 'ls' }]], { files: memoryFiles() })

    expect(results[0]).toMatch(/is kept in memory: no program can run there/)
  })

  test('the model is offered all of them', async () => {
    const { model } = await work([])

    expect(toolNamesIn(model.requests[0])).toEqual([
      'shell',
      'read_text_file',
      'write_file',
      'edit_file',
      'delete_file',
      'list_directory',
      'search_files',
      'search_text',
      'tree',
    ])
  })
})
