import { matchName } from '../../grant/match.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import { isBuiltinToolkit, toolNamesOf } from '../extension/builtin-toolkit.ts'
import { isBuiltIn } from '../extension/extension-sources.ts'
import { sourceName } from '../extension/source-name.ts'
import type { ExtensionConfig } from '../recipe/recipe.ts'

/**
 * A recipe as agent files say it. The extensions that it lists are all that it has, while an agent file has its servers
 * beside its host's tools: so the tools of these extensions become its list of tools.
 */
export function withListedTools(agent: AgentFile): AgentFile {
  const { dialect, extensions } = agent
  if (dialect !== 'recipe' || extensions === null) return agent
  const others = extensions.filter((extension) => toolsOf(extension) === undefined || isServer(extension))
  const allow = [...new Set(extensions.flatMap((extension) => toolsOf(extension) ?? []))]
  return { ...agent, extensions: others.length === 0 ? null : others, tools: { ...agent.tools, allow } }
}

/** Undefined where it is not known here what it has. */
function toolsOf(extension: ExtensionConfig): readonly string[] | undefined {
  const { type, name, availableTools } = extension
  if (isServer(extension)) {
    const prefix = `${sourceName(name)}__`
    return availableTools.length === 0 ? [`${prefix}*`] : availableTools.map((tool) => `${prefix}${tool}`)
  }
  if (type !== 'builtin' && type !== 'platform') return undefined
  if (isBuiltIn(name)) return []
  if (!isBuiltinToolkit(name)) return undefined
  return toolNamesOf(name).filter(
    (tool) => availableTools.length === 0 || availableTools.some((one) => matchName(one, tool)),
  )
}

function isServer({ type }: ExtensionConfig): boolean {
  return type === 'stdio' || type === 'streamable_http'
}
