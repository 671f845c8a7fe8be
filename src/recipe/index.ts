export type { AgentFile, ToolChoice } from './agent-file/agent-file.ts'
export { EMPTY_AGENT_FILE } from './agent-file/empty-agent-file.ts'
export { type AgentFileOptions, loadAgentFile } from './agent-file/load-agent-file.ts'
export { modelOf } from './agent-file/model-name.ts'
export { type Converted, type ConvertOptions, convert } from './convert/convert.ts'
export { recipeFileName, writeRecipe } from './convert/write-recipe.ts'
export { DIALECTS } from './dialects/index.ts'
export { type Definition, type Discovered, discover, findDefinition, mentionedIn } from './discovery/discover.ts'
export { missingAgents } from './discovery/named-agents.ts'
export type { DiscoveryOptions } from './discovery/options.ts'
export {
  type DiscoveredSkills,
  discoverSkills,
  readSkillFile,
  type Skill,
  skillInstructions,
} from './discovery/skills.ts'
export { type SubagentNotice, subagentLine, subagentNotice } from './events/subagent-notice.ts'
export { readTaskEvent, TaskBoard, type TaskEvent, type TaskInfo } from './events/task-events.ts'
export {
  BUILTIN_TOOLKITS,
  type BuiltinOptions,
  type BuiltinToolkit,
  builtinToolkit,
} from './extension/builtin-toolkit.ts'
export {
  type ExtensionOptions,
  type ExtensionSources,
  extensionSources,
} from './extension/extension-sources.ts'
export { skillsTools } from './extension/skills-tools.ts'
export { sourceName } from './extension/source-name.ts'
export { loadDefinition, readDefinition } from './load-definition.ts'
export type { AskParameter } from './recipe/bind-values.ts'
export {
  describeRecipe,
  type LoadedRecipe,
  loadRecipe,
  type RecipeOptions,
  readRecipeFile,
} from './recipe/load-recipe.ts'
export type {
  ExtensionConfig,
  Recipe,
  RecipeDescription,
  RecipeParameter,
  RecipeSettings,
  RetryConfig,
  SubRecipe,
} from './recipe/recipe.ts'
export { type NeededSecret, secretsOf, subRecipeValues } from './recipe/sub-recipes.ts'
export { type ModelUse, modelUse } from './run/model-use.ts'
export { type Notice, type NoticeCode, noticesOf, noticeText } from './text/notice.ts'
export { type Validated, validateDefinition } from './validate-definition.ts'
