import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parse as parseToml } from 'smol-toml'
import { parse as parseYaml } from 'yaml'
import { corpus } from '../../../recipe/support/corpus.ts'

export const own = path.join(import.meta.dirname, '../files')

/** A file of somebody, read with nothing of ours: what its keys say, before anything is made of them. */
export interface Definition {
  readonly file: string
  /** As tests name it. */
  readonly name: string
  readonly dialect: 'recipe' | 'claude' | 'codex' | 'copilot' | 'cursor' | 'gemini' | 'goose' | 'opencode'
  readonly said: Said
  /** Its front matter cannot be read as it is: what is said of it, with its line. */
  readonly trouble: string | null
}

/** The keys that these files have, as other programs document them. */
export interface Said {
  readonly tools?: unknown
  readonly model?: string
  readonly provider?: string
  readonly readonly?: boolean
  readonly sandbox_mode?: string
  readonly mcp_servers?: Readonly<Record<string, { readonly url: string }>>
  readonly parameters?: readonly Parameter[]
  readonly extensions?: readonly Extension[]
  readonly sub_recipes?: readonly SubRecipe[]
  readonly response?: { readonly json_schema: Schema }
}

export interface Parameter {
  readonly key: string
  readonly input_type: string
  readonly requirement: string
  readonly default?: unknown
  readonly options?: readonly string[]
}

export interface Extension {
  readonly type: string
  readonly name: string
  readonly args?: readonly string[]
  readonly env_keys?: readonly string[]
}

export interface SubRecipe {
  readonly name: string
  readonly path: string
  readonly values?: Readonly<Record<string, unknown>>
}

export interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly enum?: readonly unknown[]
}

export function agentFiles(): readonly Definition[] {
  return [...filesBelow(path.join(corpus, 'agents')), ...filesBelow(own)].map((file) => ({
    file,
    name: path.relative(file.startsWith(own) ? own : path.join(corpus, 'agents'), file),
    dialect: dialectOf(file),
    ...(file.endsWith('.toml') ? readToml(file) : frontMatter(file)),
  }))
}

export function recipes(): readonly Definition[] {
  const folder = path.join(corpus, 'goose')
  return filesBelow(folder).map((file) => ({
    file,
    name: path.relative(folder, file).replace('documentation/src/pages/recipes/data/', ''),
    dialect: 'recipe',
    said: readRecipe(file),
    trouble: null,
  }))
}

export function readRecipe(file: string): Said {
  return parseYaml(readFileSync(file, 'utf8')) as Said
}

const DIALECTS = { '.claude': 'claude', '.cursor': 'cursor', '.github': 'copilot' } as const

function dialectOf(file: string): Definition['dialect'] {
  const [folder = ''] = path.relative(file.startsWith(own) ? own : path.join(corpus, 'agents'), file).split(path.sep)
  return folder in DIALECTS ? DIALECTS[folder as keyof typeof DIALECTS] : (folder as Definition['dialect'])
}

type Read = Pick<Definition, 'said' | 'trouble'>

function readToml(file: string): Read {
  return { said: parseToml(readFileSync(file, 'utf8')) as Said, trouble: null }
}

/** Line by line where it is no YAML: such files have a colon in their description. */
function frontMatter(file: string): Read {
  const [, head = ''] = /^---\n(.*?)\n---\n/s.exec(readFileSync(file, 'utf8')) ?? []
  try {
    return { said: parseYaml(head) as Said, trouble: null }
  } catch {
    const lines = head.split('\n')
    const pairs = lines.map((line) => line.split(/: (.*)/s, 2) as [string, string])
    const wrong = lines.findIndex((line) => /^\w+: .*: /.test(line)) + 2
    const trouble = `${path.basename(file)}:${wrong}: warning: the front matter is not valid YAML`
    return { said: Object.fromEntries(pairs), trouble }
  }
}

function filesBelow(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.join(entry.parentPath, entry.name))
      .sort()
  } catch {
    return []
  }
}
