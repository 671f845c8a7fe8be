/** A call that a model makes, and what it is to get back. */
export interface Call {
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
  readonly gives: RegExp
}

/** What a model is told of a tool that it may not use, or that is not there. */
export const REFUSED = /not allowed|no tool|unknown tool|not available/i

/** Files of the folder that everything runs in. */
export const FILES = {
  'notes.txt': 'three blind mice\n',
  'draft.txt': 'old words\n',
  'leftover.txt': 'to be deleted\n',
} as const

/** What comes with the package and works on the folder: each tool, a call of it, and what that gives where it is allowed. */
const DEVELOPER: readonly Call[] = [
  { name: 'read_text_file', input: { path: '/workspace/notes.txt' }, gives: /three blind mice/ },
  { name: 'list_directory', input: { path: '/workspace' }, gives: /notes\.txt/ },
  { name: 'search_files', input: { path: '/workspace', pattern: '*.txt' }, gives: /notes\.txt/ },
  { name: 'search_text', input: { text: 'blind' }, gives: /notes\.txt/ },
  { name: 'tree', input: {}, gives: /notes\.txt/ },
  { name: 'shell', input: { command: 'echo the shell works' }, gives: /the shell works/ },
  { name: 'write_file', input: { path: '/workspace/made.txt', content: 'made' }, gives: /made\.txt/ },
  {
    name: 'edit_file',
    input: { path: '/workspace/draft.txt', edits: [{ oldText: 'old', newText: 'new' }] },
    gives: /draft\.txt/,
  },
  { name: 'delete_file', input: { path: '/workspace/leftover.txt' }, gives: /leftover\.txt/ },
]

/** Tools that a person is asked about. */
export const ASKED: ReadonlySet<string> = new Set([
  'shell',
  'write_file',
  'edit_file',
  'delete_file',
  'memory_remember',
  'memory_forget',
])

export const DEVELOPER_TOOLS: readonly string[] = DEVELOPER.map(({ name }) => name)

/** Every tool of the toolkit: those that are allowed do their work, all others are refused. */
export function developerCalls(allowed: ReadonlySet<string>): readonly Call[] {
  return DEVELOPER.map((call) => (allowed.has(call.name) ? call : { ...call, gives: REFUSED }))
}

export const MEMORY: readonly (readonly Call[])[] = [
  [{ name: 'memory_remember', input: { category: 'style', text: 'short words' }, gives: /Remembered/ }],
  [{ name: 'memory_recall', input: {}, gives: /short words/ }],
  [{ name: 'memory_forget', input: { category: 'style' }, gives: /Forgotten: 1/ }],
]

export const TODO: Call = { name: 'todo_write', input: { content: '- [ ] one' }, gives: REFUSED }
