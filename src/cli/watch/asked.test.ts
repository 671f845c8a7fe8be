import { expect, test } from 'vitest'
import type { Node } from '../../index.ts'
import { callOf, wantedIn, wantedLines, wholeCallOf } from './asked.ts'

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

  expect(wholeCallOf(asked)).toBe(words)
  expect(callOf(asked)).toBe(words)
  expect(wantedIn({ request: `exec:${mcp}`, tool: null, input: about })).toBe(words)
})

test('who is asked to let a server be reached sees its address, and no control characters of it', () => {
  const about = { mcp: 'https://docs.example.com/\u001b[2Jmcp', headers: ['Authorization'], env: [], secrets: [] }
  const asked = node({ metadata: { approval: { request: 'net:docs.example.com', input: about } } })

  const words = wholeCallOf(asked)
  expect(words).toMatch(/^net:docs\.example\.com, the MCP server https:.*mcp, with the headers Authorization$/)
  expect(words).not.toContain('\u001b')
})

test('I11 who is asked for a call sees what it needs where the call does not say it', () => {
  const request = "exec:sh -c 'echo hostile > PWNED'"
  const asked = { state: 'awaiting_approval', input: { call: { id: 'x', name: 'recipe__check', input: {} } } }

  expect(wantedIn({ request, tool: 'recipe__check', input: {} })).toBe(`${request} for recipe__check {}`)
  expect(wholeCallOf(node({ ...asked, metadata: { approval: { request, input: {} } } }))).toContain(request)
  expect(wantedIn({ request: 'tool:look', tool: 'look', input: { at: 'x' } })).toBe('look {"at":"x"}')
})

test('a secret that the request hides is hidden in the call too, and nothing else is', () => {
  const request = 'exec:deploy --token *** to=here'
  const wanted = (command: string) => wantedIn({ request, tool: 'shell', input: { command } })

  expect(wanted('deploy --token abc123secret to=here')).toBe(
    'exec:deploy --token *** to=here for shell {"command":"deploy --token *** to=here"}',
  )
  expect(wanted('deploy --token $(rm) to=here')).toContain('$(rm)')
  expect(wanted('deploy --token abc to=there')).toContain('--token abc to=there')
})

test('I11 no character of what is asked for is hidden or left out', () => {
  const input = { command: 'echo these files: \u009b;touch PWNED \u202e \u200b' }

  expect(wantedIn({ request: 'tool:shell', tool: 'shell', input })).toBe(
    'shell {"command":"echo these files: \\u009b;touch PWNED \\u202e \\u200b"}',
  )
  expect(wantedIn({ request: 'exec:sh -c a\n# b', tool: null, input: null })).toBe('exec:sh -c a\\n# b')
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

  expect(wantedLines({ request: 'tool:write_file', tool: 'write_file', input: write }).split('\n')).toEqual([
    'write_file /workspace/notes.md',
    '+ # Notes',
    '+ ',
    '+ - one\\u0020\\u0020',
    '+ \\u001b[2J- two',
  ])
  expect(wholeCallOf(node({ ...asked, metadata: { approval: { request } } })).split('\n')).toEqual([
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

test('a change that has more to it, or no second line, is shown as it is called', () => {
  for (const input of [
    { path: 'a', content: 'one line' },
    { path: 'a', content: 'two\nlines', mode: 'append' },
    { path: 'a', edits: [{ oldText: 'a\nb', newText: 'c', at: 3 }] },
    { path: 'a', edits: [] },
    { path: 7, content: 'two\nlines' },
  ]) {
    const asked = { request: 'tool:write', tool: 'write', input }
    expect(wantedLines(asked)).toBe(wantedIn(asked))
  }
})

test('a model that is asked for has no more to show than its name', () => {
  const asked = node({ metadata: { approval: { request: 'model:openai/gpt-5', input: null } } })

  expect([callOf(asked), wholeCallOf(asked)]).toEqual(['model:openai/gpt-5', 'model:openai/gpt-5'])
})

test('a node that waits for nothing is told by its kind', () => {
  expect(callOf(node({}))).toBe('agent_message')
})
