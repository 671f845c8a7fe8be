import path from 'node:path'

/** The name where the file itself is one: `reviewer` of `reviewer.agent.md`. */
export function nameByPath(file: string): string {
  return withoutEnding(path.basename(file))
}

/** The name with the folders that it lies in, from the folder of agents: `deep/er`. */
export function nameBelowAgents(file: string): string {
  const place = path.resolve(file).split(path.sep).join('/')
  const [, below] = /.*\/agents?\/(.+)$/.exec(place) ?? []
  return withoutEnding(below ?? path.posix.basename(place))
}

function withoutEnding(name: string): string {
  return name.replace(/(?:\.agent|\.chatmode)?\.(?:md|toml|ya?ml|json)$/, '')
}
