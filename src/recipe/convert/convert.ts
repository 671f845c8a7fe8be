import path from 'node:path'
import type { Json } from '../../base/json.ts'
import type { AgentFile, Dialect } from '../agent-file/agent-file.ts'
import type { ExtensionConfig } from '../recipe/recipe.ts'
import type { Notice } from '../text/notice.ts'
import { writeYaml } from '../text/write-yaml.ts'
import { type ToolDialect, wordsFor } from './tool-words.ts'
import { extensionFields, recipeFileName, writeRecipe } from './write-recipe.ts'

export interface Converted {
  readonly text: string
  /** Where such a file is looked for, from the folder of a project. */
  readonly path: string
  /** What the dialect has no words for. */
  readonly notices: readonly Notice[]
}

/** The same agent as a file of another dialect. What cannot be said there is told, never said differently. */
export async function convert(agent: AgentFile, dialect: Dialect, folder?: string): Promise<Converted> {
  const writer = new Writer(agent)
  if (dialect === 'recipe') {
    const text = await writeRecipe(writer.recipe(), folder)
    return { text, path: `.goose/recipes/${recipeFileName(agent.name)}`, notices: writer.notices }
  }
  if (dialect === 'codex')
    return { text: await writer.codex(), path: `.codex/agents/${agent.name}.toml`, notices: writer.notices }
  const fields = writer[dialect]()
  const text = `---\n${await writeYaml(fields)}---\n\n${writer.body()}\n`
  return {
    text,
    path: `${PLACES[dialect]}/${fileName(agent.name)}${dialect === 'copilot' ? '.agent.md' : '.md'}`,
    notices: writer.notices,
  }
}

const PLACES: Readonly<Record<Exclude<Dialect, 'recipe' | 'codex'>, string>> = {
  legate: '.legate/agents',
  claude: '.claude/agents',
  opencode: '.opencode/agent',
  gemini: '.gemini/agents',
  copilot: '.github/agents',
  cursor: '.cursor/agents',
  goose: '.agents/agents',
}

type Fields = { [key: string]: Json | undefined }
type Part = keyof AgentFile

function fileName(name: string): string {
  return name.replace(/[^\p{L}\p{N}._ -]/gu, '-')
}

/** What each dialect has words for; the rest of an agent is lost there. */
class Writer {
  readonly notices: Notice[] = []
  private readonly agent: AgentFile

  constructor(agent: AgentFile) {
    this.agent = agent
  }

  /** Instructions; the prompt of a recipe goes below, for there is no other place. */
  body(): string {
    const { instructions, prompt, dialect } = this.agent
    if (prompt === null || dialect !== 'recipe') return instructions.trim()
    return `${instructions.trim()}\n\n${prompt.trim()}`.trim()
  }

  legate(): Fields {
    this.lose('retry', 'parameters', 'subRecipes')
    const { agent } = this
    return {
      ...this.common(),
      tools: agent.tools.allow === null ? undefined : [...agent.tools.allow],
      skills: list(agent.skills),
      temperature: agent.settings.temperature,
      topP: agent.settings.topP,
      reasoningEffort: agent.settings.reasoning,
      mcpServers: this.servers(),
      input: (agent.input as Json | null) ?? undefined,
      output: (agent.output as Json | null) ?? undefined,
      grant: (agent.grant as Json | null) ?? undefined,
      budget: (agent.budget as Json | null) ?? undefined,
      briefing: agent.briefing ?? undefined,
    }
  }

  claude(): Fields {
    this.lose('input', 'output', 'briefing', 'retry', 'parameters', 'subRecipes')
    const { agent } = this
    const words = this.words('claude')
    const agents = agent.agents === null ? ['Task'] : agent.agents.map((name) => `Task(${name})`)
    return {
      ...this.common(),
      tools:
        words === undefined
          ? undefined
          : words.length === 0 && agents.length === 0
            ? []
            : this.withAgents(words, agents).join(', '),
      disallowedTools: agent.tools.deny.length === 0 ? undefined : wordsFor(agent.tools.deny, 'claude').join(', '),
      permissionMode: this.isReadOnly() ? 'plan' : undefined,
      maxTurns: agent.budget?.turns,
      effort: agent.settings.reasoning,
      mcpServers: this.servers(),
      skills: list(agent.skills),
      background: agent.isBackground || undefined,
    }
  }

  opencode(): Fields {
    this.lose('input', 'output', 'briefing', 'retry', 'parameters', 'subRecipes', 'skills', 'extensions')
    const { agent } = this
    const words = this.words('opencode')
    const off = wordsFor(agent.tools.deny, 'opencode').map((name) => [name, false] as const)
    const on = words === undefined ? [] : [['*', false] as const, ...words.map((name) => [name, true] as const)]
    const tools = Object.fromEntries([...on, ...off])
    const { name: _, ...common } = this.common()
    return {
      ...common,
      mode: 'subagent',
      temperature: agent.settings.temperature,
      top_p: agent.settings.topP,
      reasoningEffort: agent.settings.reasoning,
      steps: agent.budget?.turns,
      tools: Object.keys(tools).length === 0 ? undefined : tools,
      permission: this.isReadOnly() ? { edit: 'deny', bash: 'deny' } : undefined,
      hidden: agent.isHidden || undefined,
    }
  }

  gemini(): Fields {
    this.lose('input', 'output', 'briefing', 'retry', 'parameters', 'subRecipes', 'skills', 'grant')
    const { agent } = this
    const wallMs = agent.budget?.wallMs
    return {
      ...this.common(),
      display_name: agent.title ?? undefined,
      tools: this.words('gemini'),
      temperature: agent.settings.temperature,
      max_turns: agent.budget?.turns,
      timeout_mins: wallMs === undefined ? undefined : wallMs / 60_000,
      mcp_servers: this.servers(),
    }
  }

  copilot(): Fields {
    this.lose(
      'input',
      'output',
      'briefing',
      'retry',
      'parameters',
      'subRecipes',
      'skills',
      'grant',
      'budget',
      'settings',
    )
    const words = this.words('copilot')
    const { agent } = this
    return {
      ...this.common(),
      tools: words === undefined ? undefined : agent.agents?.length === 0 ? words : [...words, 'agent'],
      'mcp-servers': this.servers(),
      'disable-model-invocation': agent.isHidden || undefined,
    }
  }

  cursor(): Fields {
    this.lose(
      'input',
      'output',
      'briefing',
      'retry',
      'parameters',
      'subRecipes',
      'skills',
      'budget',
      'settings',
      'extensions',
      'tools',
    )
    const { agent } = this
    return {
      ...this.common(),
      readonly: this.isReadOnly() || undefined,
      is_background: agent.isBackground || undefined,
    }
  }

  goose(): Fields {
    this.lose(
      'input',
      'output',
      'briefing',
      'retry',
      'parameters',
      'subRecipes',
      'skills',
      'grant',
      'extensions',
      'tools',
    )
    const { agent } = this
    const settings = { temperature: agent.settings.temperature, max_turns: agent.budget?.turns }
    const isSaid = Object.values(settings).some((value) => value !== undefined)
    return { ...this.common(), provider: agent.provider ?? undefined, settings: isSaid ? defined(settings) : undefined }
  }

  async codex(): Promise<string> {
    this.lose('input', 'output', 'briefing', 'retry', 'parameters', 'subRecipes', 'skills', 'budget', 'tools')
    const { stringify } = await import('smol-toml')
    const { agent } = this
    const fields = defined({
      ...this.common(),
      model_reasoning_effort: agent.settings.reasoning,
      sandbox_mode: this.isReadOnly() ? 'read-only' : undefined,
    })
    const servers = this.servers()
    const tables = servers === undefined ? '' : `\n${stringify({ mcp_servers: servers }).trimEnd()}\n`
    return `${stringify(fields).trimEnd()}\ndeveloper_instructions = ${tomlBlock(this.body())}\n${tables}`
  }

  recipe() {
    this.lose('input', 'briefing', 'skills', 'grant', 'tools')
    const { agent } = this
    return {
      file: agent.file,
      version: '1.0.0',
      title: agent.title ?? agent.name,
      description: agent.description,
      instructions: agent.instructions === '' ? null : agent.instructions,
      prompt: agent.prompt,
      activities: [],
      author: null,
      parameters: agent.parameters,
      extensions: agent.extensions,
      settings: {
        provider: agent.provider,
        model: agent.model,
        temperature: agent.settings.temperature ?? null,
        maxTurns: agent.budget?.turns ?? null,
      },
      response: agent.output === null ? null : { jsonSchema: agent.output },
      subRecipes: agent.subRecipes,
      retry: agent.retry,
    }
  }

  private common(): Fields {
    const { name, description, model } = this.agent
    return { name, description, model: model ?? undefined }
  }

  private words(dialect: ToolDialect): string[] | undefined {
    const { allow } = this.agent.tools
    return allow === null ? undefined : wordsFor(allow, dialect)
  }

  private withAgents(words: readonly string[], agents: readonly string[]): string[] {
    return this.agent.agents?.length === 0 ? [...words] : [...words, ...agents]
  }

  private isReadOnly(): boolean {
    const denied = this.agent.grant?.deny ?? []
    return ['file.write:**', 'file.delete:**', 'exec:*'].every((rule) => denied.includes(rule))
  }

  private servers(): Json | undefined {
    const { extensions } = this.agent
    if (extensions === null || extensions.length === 0) return undefined
    return Object.fromEntries(extensions.map((extension) => [extension.name, serverFields(extension)]))
  }

  private lose(...parts: readonly Part[]): void {
    for (const part of parts) {
      if (!isSaid(this.agent[part])) continue
      const message = `\`${part}\` cannot be said in this dialect and is left out`
      this.notices.push({
        level: 'warning',
        code: 'lost',
        message,
        file: path.basename(this.agent.file),
        line: null,
        hint: null,
      })
    }
  }
}

/** A text of several lines, as people write it. */
function tomlBlock(text: string): string {
  const escaped = text
    .replaceAll('\\', '\\\\')
    .replaceAll('"""', '""\\"')
    .replace(/[^\P{Cc}\n\t]/gu, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return `"""\n${escaped}\n"""`
}

function serverFields(extension: ExtensionConfig): Json {
  if (extension.type === 'stdio') {
    const env = { ...extension.envs, ...Object.fromEntries(extension.envKeys.map((key) => [key, `\${${key}}`])) }
    return { command: extension.cmd, args: [...extension.args], ...(isSaid(env) ? { env } : {}) }
  }
  if (extension.type === 'streamable_http') {
    return {
      type: 'http',
      url: extension.uri,
      ...(isSaid(extension.headers) ? { headers: { ...extension.headers } } : {}),
    }
  }
  return extensionFields(extension)
}

function isSaid(value: unknown): boolean {
  if (value === null || value === undefined) return false
  if (typeof value !== 'object') return true
  return Object.values(value).some((one) => (Array.isArray(value) ? true : isSaid(one)))
}

function list(values: readonly string[]): Json | undefined {
  return values.length === 0 ? undefined : [...values]
}

function defined(fields: Fields): { [key: string]: Json } {
  return Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, Json] => entry[1] !== undefined))
}
