/** What the servers that a stand-in plays offer: the tools of each package, by the name it is started by. */
export const PACKAGES = {
  '@upstash/context7-mcp': ['resolve-library-id', 'get-library-docs'],
  '@modelcontextprotocol/server-github': ['search_repositories', 'list_issues'],
  'github-mcp-server': ['list_commits', 'list_pull_requests'],
  'mcp-remote': ['search_metadata', 'get_entity_details'],
  'pr-review-mcp.py': ['add_comment', 'finish_review'],
}

/** The package that the arguments of npx, uvx, uv or docker name: `-y @upstash/context7-mcp@1.0.31`, `run server.py`. */
export function packageOf(args) {
  const name = args.find((word) => !word.startsWith('-') && word !== 'run') ?? ''
  return name.endsWith('.py') ? name.slice(name.lastIndexOf('/') + 1) : name.replace(/(?<=.)@[^@/]*$/, '')
}
