import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { type AgentFile, convert, DIALECTS, loadDefinition, readDefinition, recipeFileName } from 'legate/recipe'
import { describe, expect, test } from 'vitest'
import { folderWith, minimal, recipeFile } from './support/folder.ts'

const CLAUDE = `---
name: reviewer
description: "Reviews: code"
tools: Read, Grep, Bash, mcp__github__get_pr, Task(writer)
model: sonnet
permissionMode: plan
maxTurns: 7
effort: high
mcpServers:
  github: {command: npx, args: [-y, "gh@1.10"], env: {TOKEN: "\${TOKEN}", MODE: fast}}
---

You review.

---

Be kind: always.
`

async function claude(): Promise<AgentFile> {
  const folder = folderWith({ '.claude/agents/reviewer.md': CLAUDE })
  return loadDefinition(path.join(folder, '.claude/agents/reviewer.md'))
}

async function through(agent: AgentFile, dialect: (typeof DIALECTS)[number]) {
  const folder = folderWith()
  const converted = await convert(agent, dialect, folder)
  const file = path.join(folder, converted.path)
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, converted.text)
  return { ...converted, again: await readDefinition(file) }
}

describe('an agent in the words of another program', () => {
  test.each(DIALECTS)(
    '%s: name, description, instructions and model are kept, and it lies where it is looked for',
    async (dialect) => {
      const agent = await claude()
      const { again } = await through(agent, dialect)

      expect(again).toMatchObject({ dialect, name: 'reviewer', description: 'Reviews: code', model: 'sonnet' })
      expect(again.instructions.trim()).toBe(agent.instructions)
    },
  )

  test.each([
    ['claude', ['tools', 'grant', 'budget', 'settings', 'extensions', 'agents']],
    ['legate', ['tools', 'grant', 'budget', 'settings', 'extensions']],
    ['opencode', ['tools', 'budget', 'settings']],
    ['gemini', ['budget', 'extensions']],
    ['copilot', ['extensions']],
    ['codex', ['settings', 'extensions']],
    ['recipe', ['budget', 'extensions']],
  ] as const)('%s keeps %j', async (dialect, kept) => {
    const agent = await claude()
    const { again } = await through(agent, dialect)

    for (const part of kept) {
      if (part === 'tools')
        expect(again.tools.allow?.toSorted()).toEqual(
          agent.tools.allow?.toSorted().map((name) => (dialect === 'opencode' ? name.replace('__', '_') : name)),
        )
      else if (part === 'grant') expect(again.grant?.deny).toEqual(expect.arrayContaining(['exec:*', 'file.write:**']))
      else expect(again[part], part).toEqual(agent[part])
    }
  })

  test('what cannot be said is told', async () => {
    const agent = await claude()
    const lost = async (dialect: (typeof DIALECTS)[number]) => {
      return (await convert(agent, dialect)).notices.map(({ message }) => /`(\w+)`/.exec(message)?.[1])
    }

    expect(await lost('claude')).toEqual([])
    expect(await lost('cursor')).toEqual(['budget', 'settings', 'extensions', 'tools'])
    expect(await lost('goose')).toEqual(['grant', 'extensions', 'tools'])
    expect(await lost('recipe')).toEqual(['grant', 'tools'])
  })

  test('a recipe keeps its templates; as an agent file its prompt is below its instructions', async () => {
    const text = `${minimal}instructions: I {{ a }}\nprompt: |\n  {% if a %}\n  Do {{ a }}\n  {% endif %}\nparameters:\n  - {key: a, input_type: number, requirement: optional, description: d, default: 1.10}\nsettings: {goose_model: m, max_turns: 3}\nretry: {max_retries: 2, checks: [{type: shell, command: "true"}]}\n`
    const agent = await readDefinition(recipeFile(text))
    const recipe = await through(agent, 'recipe')
    const markdown = await through(agent, 'claude')

    const lineless = ({ parameters, ...rest }: AgentFile) => ({
      ...rest,
      file: '',
      name: '',
      notices: [],
      parameters: parameters.map((one) => ({ ...one, line: null })),
    })
    expect(lineless(recipe.again)).toEqual(lineless(agent))
    expect(markdown.again.instructions).toBe('I {{ a }}\n\n{% if a %}\nDo {{ a }}\n{% endif %}')
    expect(markdown.notices.map(({ message }) => /`(\w+)`/.exec(message)?.[1])).toEqual(['retry', 'parameters'])
  })

  test('names of files are made of titles', () => {
    expect(recipeFileName('My Recipe! (v2)')).toBe('my-recipe-v2.yaml')
    expect(recipeFileName('***')).toBe('untitled-recipe.yaml')
    expect(recipeFileName('A b', new Set(['a-b.yaml', 'a-b-1.yaml']))).toBe('a-b-2.yaml')
  })
})
