import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { programRequest, requestText } from '../../core/grant/request.ts'
import { type Node, wantedText } from '../../doors/rows.ts'
import { describeCall, describeWholeCall, questionLines, requestLines } from './request-text.ts'

const node = (more: object) => ({ kind: 'agent_message', input: {}, metadata: {}, ...more }) as unknown as Node

test('who is asked to let a server be started sees its whole command line, where it runs and what it is given', () => {
  const mcp = 'npx -y some-package'
  const about = {
    mcp,
    command: 'npx',
    args: ['-y', 'some-package'],
    cwd: '/work',
    env: ['MODE'],
    secrets: ['KEY', 'PIN'],
  }
  const asked = node({ metadata: { approval: { request: `exec:${mcp}`, input: about } } })
  const words = 'exec:npx -y some-package, an MCP server in /work, with the variables MODE, with the secrets KEY, PIN'

  expect(describeWholeCall(asked)).toBe(words)
  expect(describeCall(asked)).toBe(words)
  expect(wantedText({ request: `exec:${mcp}`, tool: null, input: about })).toBe(words)
})

test('who is asked to let a server be reached sees its address, and no control characters of it', () => {
  const about = { mcp: 'https://docs.example.com/\u001b[2Jmcp', headers: ['Authorization'], env: [], secrets: [] }
  const asked = node({ metadata: { approval: { request: 'net:docs.example.com', input: about } } })

  const words = describeWholeCall(asked)
  expect(words).toMatch(/^net:docs\.example\.com, the MCP server https:.*mcp, with the headers Authorization$/)
  expect(words).not.toContain('\u001b')
})

test('I11 who is asked for a call sees what it needs where the call does not say it', () => {
  const request = "exec:sh -c 'echo hostile > PWNED'"
  const asked = { state: 'awaiting_approval', input: { call: { id: 'x', name: 'recipe__check', input: {} } } }

  expect(wantedText({ request, tool: 'recipe__check', input: {} })).toBe(`${request} for recipe__check {}`)
  expect(describeWholeCall(node({ ...asked, metadata: { approval: { request, input: {} } } }))).toContain(request)
  expect(wantedText({ request: 'tool:look', tool: 'look', input: { at: 'x' } })).toBe('look {"at":"x"}')
})

test('a secret that the request hides is hidden in the call too, and nothing else is', () => {
  const key = 'Zq81Lm55Tt09Xx37Aa12Bb34'
  const request = requestText(programRequest(['deploy', '--token', key, 'to=here']))
  const wanted = (command: string) => wantedText({ request, tool: 'shell', input: { command } })

  expect(request).toMatch(/^exec:deploy --token '\*\*\*\(24:\w{4}\)' to=here$/)
  expect(wanted(`deploy --token ${key} to=here`)).toBe(
    `${request} for shell {"command":"${request.slice('exec:'.length)}"}`,
  )
  expect(wanted('deploy --token $(rm) to=here')).toContain('$(rm)')
  expect(wanted('deploy --token abc to=here')).toContain('--token abc to=here')
  expect(wanted(`deploy --token ${key} to=there`)).toContain(`--token ${key} to=there`)
})

test('I11 no character of what is asked for is hidden or left out', () => {
  const input = { command: 'echo these files: \u009b;touch PWNED \u202e \u200b' }

  expect(wantedText({ request: 'tool:shell', tool: 'shell', input })).toBe(
    'shell {"command":"echo these files: \\u009b;touch PWNED \\u202e \\u200b"}',
  )
  expect(wantedText({ request: 'exec:sh -c a\n# b', tool: null, input: null })).toBe('exec:sh -c a\\n# b')
})

test('who is asked to let a file be changed sees the change as a diff, to the letter', () => {
  const path = '/workspace/notes.md'
  const write = { path, content: '# Notes\n\n- one  \n\u001b[2J- two\n' }
  const edits = [
    { oldText: 'one\ntwo\n', newText: 'one\nthree\n' },
    { oldText: 'x', newText: '', replaceAll: true },
  ]
  const asked = { state: 'awaiting_approval', input: { call: { id: 'x', name: 'edit_file', input: { path, edits } } } }
  const request = `file.write:${path}`

  expect(requestLines({ request: 'tool:write_file', tool: 'write_file', input: write }).split('\n')).toEqual([
    'write_file /workspace/notes.md',
    '+ # Notes',
    '+ ',
    '+ - one\\u0020\\u0020',
    '+ \\u001b[2J- two',
  ])
  expect(describeWholeCall(node({ ...asked, metadata: { approval: { request } } })).split('\n')).toEqual([
    `${request} for edit_file ${path}`,
    '@@',
    '- one',
    '- two',
    '+ one',
    '+ three',
    '@@ everywhere',
    '- x',
    '\\ no line break at the end',
  ])
})

test('who is asked to let a file be written over sees the lines that go', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-asked-'))
  writeFileSync(path.join(folder, 'notes.md'), 'old\nlines\n')
  writeFileSync(path.join(folder, 'long.md'), 'x\n'.repeat(100))
  writeFileSync(path.join(folder, 'picture'), Buffer.from([0, 255, 1]))
  symlinkSync('/etc/hostname', path.join(folder, 'away'))
  const shown = (file: string, content: string, tool = 'write_file') =>
    requestLines({ request: `tool:${tool}`, tool, input: { path: file, content } }, folder).split('\n')
  const over = ['@@ over the file that is there', '- old', '- lines']

  expect(shown('/workspace/notes.md', 'new\n')).toEqual(['write_file /workspace/notes.md', ...over, '+ new'])
  expect(shown('notes.md', 'x')).toEqual(['write_file notes.md', ...over, '+ x', '\\ no line break at the end'])
  expect(shown('long.md', 'y\n').slice(40)).toEqual(['- x', '- x', '\\ 60 more lines of it go', '+ y'])
  expect(shown('picture', 'y\n')).toEqual([
    'write_file picture',
    '@@ over a file of 3 bytes, which is not shown',
    '+ y',
  ])
  for (const file of ['none.md', 'away', '../notes.md', '/etc/hostname']) {
    expect(shown(file, 'y\n')).toEqual([`write_file ${file}`, '+ y'])
  }
  expect(shown('notes.md', 'y\n', 'srv__write')).toEqual(['srv__write notes.md', '+ y'])
})

test('a change that has more to it, or no second line, is shown as it is called', () => {
  for (const input of [
    { path: 'a', content: 'one line' },
    { path: 'a', content: 'two\nlines', mode: 'append' },
    { path: 'a', edits: [{ oldText: 'a\nb', newText: 'c', at: 3 }] },
    { path: 'a', edits: [] },
    { path: 7, content: 'two\nlines' },
  ]) {
    const asked = { request: 'tool:write', tool: 'write', input }
    expect(requestLines(asked)).toBe(wantedText(asked))
  }
})

test('a model that is asked for has no more to show than its name', () => {
  const asked = node({ metadata: { approval: { request: 'model:openai/gpt-5', input: null } } })

  expect([describeCall(asked), describeWholeCall(asked)]).toEqual(['model:openai/gpt-5', 'model:openai/gpt-5'])
})

test('a node that waits for nothing is told by its kind', () => {
  expect(describeCall(node({}))).toBe('agent_message')
})

describe('the lines of a question', () => {
  const prompt = 'Allow? y or n'

  test('a question that fits is shown whole, the keys below it', () => {
    expect(questionLines({ text: 'May I go there now?', prompt }, 14, 5)).toEqual(['May I go there', 'now?', prompt])
  })

  test('of one that does not fit it is said how much is hidden, and the keys stay', () => {
    const text = 'x'.repeat(500)

    expect(questionLines({ text, prompt }, 60, 4)).toEqual([
      'x'.repeat(60),
      'x'.repeat(60),
      '… 380 more characters: legate approvals shows all',
      prompt,
    ])
    expect(questionLines({ text, prompt }, 60, 1)).toEqual([
      '… 500 more characters: legate approvals shows all',
      prompt,
    ])
  })
})
