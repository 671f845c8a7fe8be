import { plainHost } from '../../grant/host.ts'
import { quoteWords } from '../../grant/words.ts'
import { loadingWords } from '../../tool/environment.ts'
import type { ExtensionConfig } from '../recipe/recipe.ts'
import type { OwnNeeds } from './narrowing.ts'

/** The command lines and hosts of the MCP servers that a file brings along: its own limits are about its tools, not about them. */
export function ownNeeds(extensions: readonly ExtensionConfig[] | null): OwnNeeds {
  const all = (extensions ?? []).filter(({ excludedTools = [] }) => !excludedTools.includes('*'))
  return {
    exec: all.flatMap((extension) =>
      extension.type === 'stdio'
        ? [quoteWords([...loadingWords(extension.envs), extension.cmd, ...extension.args])]
        : [],
    ),
    net: all.flatMap((extension) => (extension.type === 'streamable_http' ? hostOf(extension.uri) : [])),
  }
}

function hostOf(uri: string): string[] {
  const host = plainHost(uri)
  return host === undefined ? [] : [host]
}
