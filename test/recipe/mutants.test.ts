import { describe, expect, test } from 'vitest'
import { RecipeError } from '../../src/core/base/error.ts'
import { parseAgentFile } from '../../src/recipes/dialects/load-agent-file.ts'
import { readRecipe } from '../../src/recipes/recipe/read-recipe.ts'
import { readSource } from '../../src/recipes/recipe/recipe-source.ts'
import { NoticeReport } from '../../src/recipes/text/notice.ts'
import { figure } from '../crash/support/figure.ts'
import { isFull } from '../crash/support/full.ts'
import { Chance } from '../support/chance.ts'
import { watchWork } from '../support/pace.ts'

const MUTANTS = isFull ? 1_000_000 : 2_000
/** One broken file must not hold up the next. */
const SLOWEST_MS = 2_000

/** Small, so that many are tried: each has a few of the things that there are. */
const RECIPES = [
  'title: T\ndescription: "{{ a }}"\nprompt: |\n  x {{ b }}\n  {% if a == "x" %}y{% endif %}\n',
  'title: T\n{% if a %}\ndescription: {{ a }}\n{% endif %}\nprompt: "{{ b | upper }}"\n',
  '{"title": "T", "description": "D", "prompt": "P {{ a }}", "activities": ["x", 1.10]}',
  'title: T\ndescription: D\nprompt: P\nparameters:\n  - {key: a, input_type: select, requirement: optional, description: d, default: 1.10}\n',
  'recipe:\n  title: &t T\n  description: *t\n  prompt: P\n  retry: {max_retries: 2, checks: [{type: shell, command: c}]}\n',
  'title: T\ndescription: D\nprompt: P\nextensions:\n  - {type: stdio, name: "{{ a }}", cmd: c, args: [x], envs: {K: v}}\n',
]
const AGENTS: readonly (readonly [string, string])[] = [
  [
    '/x/.claude/agents/a.md',
    '---\nname: a\ndescription: Use when: asked\ntools: Read, Bash(git *), mcp__s__t\npermissionMode: plan\n---\n\nBody\n---\nmore\n',
  ],
  [
    '/x/.opencode/agent/a.md',
    '---\ndescription: d\ntools: {"*": false, read: true}\npermission: {bash: {"*": ask, "git *": allow}, edit: deny}\n---\nBody\n',
  ],
  [
    '/x/.gemini/agents/a.md',
    '---\nname: a\ndescription: >\n  folded\ntools: [read_file, "mcp_*"]\nmcp_servers: {s: {command: npx, args: [x]}}\ntimeout_mins: 1.5\n---\nBody\n',
  ],
  [
    '/x/.codex/agents/a.toml',
    'name = "a"\ndescription = "d"\nsandbox_mode = "read-only"\ndeveloper_instructions = """\nDo\n"""\n[mcp_servers.s]\ncommand = "npx"\n',
  ],
  [
    '/x/.legate/agents/a.md',
    '---\ndescription: d\ngrant: {use: ["tool:*"]}\nbudget: {modelCalls: 5}\ninput: {type: object}\nbriefing: none\n---\nBody\n',
  ],
]
const PIECES = [
  '\n',
  ' ',
  '  ',
  '\t',
  ':',
  ': ',
  '-',
  '- ',
  '---\n',
  '#',
  '"',
  "'",
  '{',
  '}',
  '[',
  ']',
  '{{',
  '}}',
  '{%',
  '%}',
  '{#',
  '#}',
  '|',
  '>',
  '&a ',
  '*a',
  '!',
  '!!int ',
  '%',
  '@',
  '`',
  ',',
  '?',
  '? ',
  '<<: ',
  '0',
  '-1',
  '1e999',
  'null',
  '~',
  'true',
  '.inf',
  '\r',
  '\u0000',
  '\ufeff',
  '\u2028',
  '\ud800',
  'é',
  '\u{1F600}',
  '"""',
  '=',
  '{% if a %}',
  '{% endif %}',
  '{% raw %}',
  '__proto__: x\n',
  'constructor',
]

describe('I10: mutated files', () => {
  test(`${MUTANTS} of them are read or refused, and none crashes or hangs`, { timeout: 3_600_000 }, async () => {
    const chance = new Chance(20_261_115)
    const ends = { read: 0, refused: 0 }
    let slowest = 0
    for (let at = 0; at < MUTANTS; at++) {
      const workMs = watchWork()
      ends[await outcomeOf(at % 2 === 0 ? recipeMutant(chance) : agentMutant(chance))]++
      slowest = Math.max(slowest, workMs())
    }
    figure('mutated files', `${MUTANTS}: ${ends.read} read, ${ends.refused} refused, slowest ${slowest.toFixed(0)} ms`)

    expect(ends.read + ends.refused).toBe(MUTANTS)
    expect(ends.read).toBeGreaterThan(MUTANTS / 20)
    expect(ends.refused).toBeGreaterThan(MUTANTS / 20)
    expect(slowest).toBeLessThan(SLOWEST_MS)
  })
})

async function outcomeOf(read: () => Promise<unknown>): Promise<'read' | 'refused'> {
  try {
    await read()
    return 'read'
  } catch (error) {
    if (RecipeError.isInstance(error)) return 'refused'
    throw error
  }
}

function recipeMutant(chance: Chance): () => Promise<unknown> {
  const text = mutated(chance.pick(RECIPES), chance)
  const report = new NoticeReport('/x/recipe.yaml', chance.is(0.5))
  return async () => {
    const source = await readSource(text, { file: report.file }, report).catch((error: unknown) => {
      if (RecipeError.isInstance(error)) throw error
      throw new Error(`failed on ${JSON.stringify(text)}`, { cause: error })
    })
    readRecipe(source.tree, report.file, report)
    const tree = await source.render({ a: 'x: {y', b: '\n- z', recipe_dir: '/x' })
    readRecipe(tree, report.file, report)
    report.check()
  }
}

function agentMutant(chance: Chance): () => Promise<unknown> {
  const [file, text] = chance.pick(AGENTS)
  const mutant = mutated(text, chance)
  return () =>
    parseAgentFile(mutant, file).catch((error: unknown) => {
      if (RecipeError.isInstance(error)) throw error
      throw new Error(`failed on ${JSON.stringify(mutant)}`, { cause: error })
    })
}

/** A few pieces put in, taken out, doubled or moved. */
function mutated(text: string, chance: Chance): string {
  let mutant = text
  for (let times = 1 + chance.below(4); times > 0; times--) {
    const at = chance.below(mutant.length + 1)
    const end = Math.min(mutant.length, at + chance.below(chance.is(0.2) ? 80 : 6))
    const middle = chance.pick([
      () => '',
      () => chance.pick(PIECES),
      () => mutant.slice(at, end).repeat(2),
      () => chance.pick(PIECES) + mutant.slice(at, end),
    ])()
    mutant = mutant.slice(0, at) + middle + mutant.slice(end)
  }
  return mutant
}
