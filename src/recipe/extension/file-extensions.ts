import { matchName } from '../../grant/match.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import type { ExtensionConfig } from '../recipe/recipe.ts'
import { BUILTIN_TOOLKITS, type BuiltinToolkit, toolNamesOf } from './builtin-toolkit.ts'

/**
 * Where a file that is run itself has its tools from. A recipe lists its extensions. An agent file names tools: it has
 * the toolkits that hold them, beside its servers. Where a file says nothing, it is the developer toolkit.
 */
export function fileExtensions({ dialect, extensions, tools }: AgentFile): readonly ExtensionConfig[] {
  if (dialect === 'recipe') return extensions ?? [builtin('developer')]
  const listed = extensions ?? []
  const wanted = tools.allow === null ? (['developer'] as const) : BUILTIN_TOOLKITS.filter(holdsOneOf(tools.allow))
  const missing = wanted.filter((name) => !listed.some((extension) => extension.name === name))
  return [...missing.map(builtin), ...listed]
}

function holdsOneOf(patterns: readonly string[]): (name: BuiltinToolkit) => boolean {
  return (name) => toolNamesOf(name).some((tool) => patterns.some((pattern) => matchName(pattern, tool)))
}

function builtin(name: BuiltinToolkit): ExtensionConfig {
  return {
    type: 'builtin',
    name,
    description: '',
    availableTools: [],
    required: false,
    displayName: null,
    timeoutSeconds: null,
  }
}
