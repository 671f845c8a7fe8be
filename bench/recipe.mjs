// node bench/recipe.mjs: what it takes to load a recipe of 20 kB, and to find 1,000 definitions. Needs dist (npm run build).

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { discover, loadRecipe } from 'legate/recipe'

const LOAD_MS = 20
const DISCOVERY_MS = 300
const ROUNDS = 25

const folder = mkdtempSync(path.join(tmpdir(), 'legate-bench-'))
try {
  const file = path.join(folder, 'recipe.yaml')
  const text = recipeOf(20_000)
  writeFileSync(file, text)
  const load = await measure(() => loadRecipe(file, { parameters: { target: 'src: {x}', style: 'short' } }))
  tell(`a recipe of ${text.length} bytes is loaded`, load, LOAD_MS)

  const project = path.join(folder, 'project')
  makeDefinitions(project)
  let found = 0
  const discovery = await measure(async () => {
    found = (await discover({ cwd: project, home: path.join(folder, 'home'), env: {} })).definitions.length
  })
  tell(`${found} definitions are found`, discovery, DISCOVERY_MS)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Instructions with conditions and values, as cookbooks have them. */
function recipeOf(bytes) {
  const part = (at) =>
    `  ## Step ${at}\n  Look at {{ target }} and write what you find: "{{ style | upper }}".\n  {% if style == "long" %}\n  - Tell every detail of part ${at}, with files and lines.\n  {% else %}\n  - Be short.\n  {% endif %}\n`
  const head = `version: 1.0.0\ntitle: Review\ndescription: Reviews {{ target }}\nparameters:\n  - {key: target, input_type: string, requirement: required, description: what to review}\n  - {key: style, input_type: select, requirement: optional, description: how, default: short, options: [short, long]}\nextensions:\n  - {type: builtin, name: developer}\nprompt: Begin with {{ target }}.\ninstructions: |\n`
  let text = head
  for (let at = 1; text.length < bytes; at++) text += part(at)
  return text
}

/** Half agent files of 2 kB, half recipes of 1 kB. */
function makeDefinitions(project) {
  mkdirSync(path.join(project, '.claude/agents'), { recursive: true })
  mkdirSync(path.join(project, '.goose/recipes'), { recursive: true })
  for (let at = 0; at < 500; at++) {
    const agent = `---\nname: agent-${at}\ndescription: "Use this agent for part ${at} of the work."\ntools: Read, Write, Edit, Bash, Glob, Grep\nmodel: sonnet\n---\n\n${'You are careful and thorough. '.repeat(60)}\n`
    writeFileSync(path.join(project, `.claude/agents/agent-${at}.md`), agent)
    writeFileSync(path.join(project, `.goose/recipes/recipe-${at}.yaml`), recipeOf(1_000))
  }
}

/** CPU time of all threads: what else runs on the machine is not in it. The first round also loads the code. */
async function measure(work) {
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage()
    const start = performance.now()
    await work()
    const { user, system } = process.cpuUsage(before)
    rounds.push({ cpu: (user + system) / 1_000, wall: performance.now() - start })
  }
  const fastest = (key) => Math.min(...rounds.map((round) => round[key]))
  const sorted = rounds.map(({ cpu }) => cpu).sort((a, b) => a - b)
  return { first: rounds[0].cpu, cpu: sorted[Math.floor(ROUNDS / 2)], wall: fastest('wall') }
}

function tell(what, { first, cpu, wall }, limit) {
  const times = `${cpu.toFixed(1).padStart(7)} ms of CPU (median), ${wall.toFixed(1)} ms by the clock (fastest)`
  console.log(`${times}  ${what}; the first time, everything loaded too: ${first.toFixed(0)} ms of CPU`)
  if (Math.min(cpu, wall) <= limit) return
  console.error(`That may take ${limit} ms at most.`)
  process.exitCode = 1
}
