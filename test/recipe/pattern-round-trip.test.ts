import path from 'node:path'
import fc from 'fast-check'
import { type AgentFile, convert, loadAgentFile, noticesOf } from 'legate/recipe'
import { describe, expect, test } from 'vitest'
import { folderWith } from './support/folder.ts'

/** What the documentation of a program says that a path is below. */
const MEANINGS = {
  claude: [
    [/^~\//, 'home'],
    [/^\/\//, 'machine'],
    [/^(?:\.?\/)?/, 'project'],
  ],
  opencode: [
    [/^~\//, 'home'],
    [/^\/+/, 'machine'],
    [/^(?:\.\/)?/, 'project'],
  ],
} as const
type Program = keyof typeof MEANINGS
const PROGRAMS = ['claude', 'opencode'] as const

function meaningOf(program: Program, pattern: string): string {
  const [start, below] = MEANINGS[program].find(([beginning]) => beginning.test(pattern)) ?? [/^/, '']
  return `${below}: ${pattern.replace(start, '')}`
}

const PLACES: Readonly<Record<Program, string>> = { claude: '.claude/agents/a.md', opencode: '.opencode/agent/a.md' }

function written(program: Program, pattern: string, isDenied: boolean): string {
  const said = JSON.stringify(pattern)
  const claude = isDenied ? `disallowedTools: ["Read(${pattern})"]` : `tools: ["Read(${pattern})", Task]`
  const opencode = isDenied ? `{${said}: deny}` : `{"*": deny, ${said}: allow}`
  return `---\nname: a\ndescription: d\n${program === 'claude' ? claude : `permission: {read: ${opencode}}`}\n---\n\nDo it.\n`
}

/** The patterns that stand in a file, as a person would read it. */
function patternsIn(program: Program, text: string): readonly string[] {
  if (program === 'claude') return Array.from(text.matchAll(/Read\(([^)]*)\)/g), ([, pattern = '']) => pattern)
  const [, rules = ''] = /read:\n((?: {4}.*\n)+)/.exec(text) ?? []
  const lines = Array.from(rules.matchAll(/^ {4}"?(.*?)"?: (?:allow|deny)$/gm), ([, pattern = '']) => pattern)
  return lines.filter((pattern) => pattern !== '*')
}

async function read(text: string, place: string): Promise<AgentFile> {
  return loadAgentFile(path.join(folderWith({ [place]: text }), place))
}

/** Undefined where the other program cannot say it. */
async function through(agent: AgentFile, dialect: string): Promise<string | undefined> {
  try {
    return (await convert(agent, dialect)).text
  } catch (error) {
    if (noticesOf(error).length === 0) throw error
    return undefined
  }
}

const names = fc.constantFrom('.ssh', 'src', 'a b', '.env', 'home', 'etc', 'x.txt', '~')
const below = fc.tuple(fc.array(names, { minLength: 1, maxLength: 3 }), fc.constantFrom('', '/**', '/*'))
const pattern = fc
  .tuple(fc.constantFrom('~/', '//', '/', './', ''), below)
  .map(([start, [parts, end]]) => `${start}${parts.join('/')}${end}`)
  .filter((one) => one !== '~')

describe('a path means the same in the words of every program', () => {
  test.each([
    ['Read(~/.ssh/**)', 'claude', 'Read(~/.ssh/**)'],
    ['Read(//etc/**)', 'claude', 'Read(//etc/**)'],
    ['Edit(//etc/**)', 'claude', 'Edit(//etc/**)'],
    ['Read(/src/**)', 'claude', 'Read(src/**)'],
    ['Read(//home/.ssh/**)', 'claude', 'Read(//home/.ssh/**)'],
    ['Read(.env*)', 'claude', 'Read(.env*)'],
    ['Read(~/.ssh/**)', 'opencode', '    ~/.ssh/**: deny\n'],
    ['Read(//etc/**)', 'opencode', '    /etc/**: deny\n'],
  ])('%s is in %s %s', async (word, dialect, expected) => {
    const text = `---\nname: a\ndescription: d\ndisallowedTools: ["${word}"]\n---\n\nDo it.\n`

    expect((await convert(await read(text, PLACES.claude), dialect)).text).toContain(expected)
  })

  test('whatever the path: what is forbidden stays forbidden, and what is allowed is no other', async () => {
    let kept = 0
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...PROGRAMS),
        fc.constantFrom(...PROGRAMS),
        fc.tuple(pattern, fc.boolean(), fc.boolean()),
        async (from, to, [given, isDenied, isRound]) => {
          const agent = await read(written(from, given, isDenied), PLACES[from])
          const ours = isRound ? await through(agent, 'legate') : undefined
          const source = ours === undefined ? agent : await read(ours, '.legate/agents/a.md')
          const text = await through(source, to)
          if (text === undefined) return
          kept++
          const meant = meaningOf(from, given.replace(/\/\*$/, '/**'))
          const found = new Set(patternsIn(to, text).map((one) => meaningOf(to, one)))
          if (isDenied) expect([...found], text).toContain(meant)
          else expect([...found], text).toEqual([meant])
        },
      ),
      { numRuns: 300 },
    )
    expect(kept, 'most can be written').toBeGreaterThan(200)
  }, 60_000)
})
