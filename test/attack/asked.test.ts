// What a person is asked to allow, as each door words it: whole, with its reason, and with no character that cannot be seen.

import type { PendingApproval } from 'legate'
import { askedText, wantedText } from 'legate/rows'
import { describe, expect, test } from 'vitest'
import { pendingParts } from '../../src/server/protocols/a2a/pending.ts'
import { permissionOf } from '../../src/server/protocols/acp/pending.ts'
import { inputRequests, pendingText } from '../../src/server/protocols/mcp/pending.ts'
import { wantedOf } from '../../web/panes/ask/facts.ts'
import { exactValue } from '../../web/words/exact.ts'

/** Line breaks, marks of direction, blanks of no width, tags, controls. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029\u00a0]/u
const HOSTILE = 'echo ok\n; rm -rf /\r\u202etxt.exe\u2066\u200b\u200d\u00ad\u{e0041}\u0007\u00a0end'
const TAIL = 'THE-VERY-END'

const asked: PendingApproval = {
  nodeId: 'n',
  runId: 'r',
  rootRunId: 'r',
  conversationId: 'c',
  path: ['lead', 'writer\u202e'],
  request: `exec:${HOSTILE} ${TAIL}`,
  tool: 'shell',
  input: {
    argv: ['sh', '-c', HOSTILE],
    cwd: '/workspace/\u202ehidden',
    [`k\u200b${TAIL}`]: `${'x'.repeat(900)}${TAIL}`,
  },
  seen: 'f'.repeat(64),
  reason: `the grant of "writer\u202e" asks for exec:*`,
  required: false,
  since: 1,
  expiresAt: 2,
}

/** Each piece that a yes covers, as a person can read it. */
const PIECES = [
  'rm -rf /',
  '\\u202etxt.exe\\u2066\\u200b\\u200d\\u00ad',
  '"sh"',
  '/workspace/\\u202ehidden',
  `k\\u200b${TAIL}`,
  `${'x'.repeat(900)}${TAIL}`,
  'asks for exec:*',
  'lead > writer',
]

const perms = (of: Parameters<typeof permissionOf>[1]) => permissionOf('s', of, '/home/ann/project').toolCall
const textsOf = (of: Parameters<typeof permissionOf>[1]): string =>
  (perms(of).content as readonly { readonly content?: { readonly text: string } }[])
    .map(({ content }) => content?.text ?? '')
    .join('\n')

const DOORS: readonly (readonly [door: string, shown: string])[] = [
  ['the terminal', askedText(asked)],
  ['an editor', textsOf(asked)],
  ['a form of MCP', pendingText({ kind: 'approval', of: asked }, '')],
  ['a task of A2A', String(pendingParts([{ kind: 'approval', of: asked }])[0]?.text)],
]

describe.each(DOORS)('%s', (_, shown) => {
  test('I11 shows all that a yes covers, and why it asks', () => {
    for (const piece of PIECES) expect(shown).toContain(piece)
  })

  test('I11 shows no character that a person cannot see', () => {
    expect(shown.replaceAll('\n', '')).not.toMatch(UNSEEN)
    expect(shown).toBe(askedText(asked))
  })
})

test('I11 an editor gets no invisible character in any other part of the prompt, and a sign where a title is cut', () => {
  const { title, rawInput, content } = perms(asked)
  expect(title).not.toMatch(UNSEEN)
  expect(title).toMatch(/^writer\\u202e: exec:echo ok\\n; rm -rf .* for shell$/)
  expect(JSON.stringify([rawInput, content])).not.toMatch(UNSEEN)
  const long = perms({ ...asked, request: 'tool:shell', input: { command: `ls ${' '.repeat(200)}; rm -rf /` } })
  expect(long.title).toMatch(/… \(\d+ more characters\)$/)
  const lines = perms({ ...asked, request: 'tool:shell', input: { command: 'ls\nrm -rf /' } })
  expect(lines.title).toBe('writer\\u202e: shell ls\\nrm -rf /')
  const write = perms({ ...asked, tool: 'write_file', input: { path: 'a.txt', content: 'one\ntwo \u202e\u200b' } })
  expect(write.content).toMatchObject([{}, { type: 'diff', newText: 'one\ntwo \\u202e\\u200b' }])
})

test('three needs of one call are three different prompts in an editor', () => {
  const needs = ['file.read:/workspace/a.txt', 'net:evil.example', 'exec:rm -rf /']
  const shown = needs.map((request) => perms({ ...asked, request, tool: 'sync', input: {} }))
  expect(new Set(shown.map(({ title }) => title)).size).toBe(3)
  for (const [at, need] of needs.entries()) expect(JSON.stringify(shown[at]?.content)).toContain(need)
})

test('a server to start is shown in an editor with its whole command line', () => {
  const mcp = `npx -y ${'pkg '.repeat(60)}${TAIL}`
  const start = { ...asked, tool: null, request: `exec:${mcp}`, input: { mcp, cwd: '/work', secrets: ['KEY'] } }
  expect(textsOf(start)).toContain(`${mcp}, an MCP server in /work, with the secrets KEY`)
  expect(wantedText(start)).toContain(TAIL)
})

test('a form of MCP words questions without invisible characters, and lets lines stand', () => {
  const of = { ...asked, text: 'Which\ncolour\u202e?', to: 'person' as const }
  const [form] = Object.values(inputRequests([{ kind: 'question', of }], { mayAlways: false, notWhole: '' }))
  expect(form).toMatchObject({ params: { message: 'lead > writer\\u202e asks: Which\ncolour\\u202e?' } })
})

test('I11 the page shows every character of a request and of its arguments', () => {
  expect(wantedOf(asked.request)).not.toMatch(UNSEEN)
  for (const value of [asked.request, asked.input, [HOSTILE]]) {
    expect(exactValue(value).replaceAll('\n', '')).not.toMatch(UNSEEN)
    expect(exactValue(value)).toContain('rm -rf /')
  }
})
