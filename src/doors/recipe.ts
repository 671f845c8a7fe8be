export { RecipeError } from '../base/error.ts'
export type { AgentFile, AgentMemory, ToolSelection } from '../recipe/agent-file/agent-file.ts'
export { EMPTY_AGENT_FILE } from '../recipe/agent-file/agent-file.ts'
export type { FileHook, HookEvent } from '../recipe/agent-file/file-hook.ts'
export { shownExtension } from '../recipe/agent-file/mcp-servers.ts'
export { modelOf } from '../recipe/agent-file/names.ts'
export type {
  ExtensionConfig,
  Recipe,
  RecipeDescription,
  RecipeParameter,
  RecipeSettings,
  RetryConfig,
  SubRecipe,
} from '../recipe/agent-file/recipe.ts'
export { type ConvertedFile, type ConvertOptions, convert } from '../recipe/convert/convert.ts'
export { recipeFileName, writeRecipe } from '../recipe/convert/write-recipe.ts'
export { DIALECTS } from '../recipe/dialects/index.ts'
export { type AgentFileOptions, loadAgentFile } from '../recipe/dialects/load-agent-file.ts'
export {
  type Definition,
  type DiscoveryResult,
  discover,
  findDefinition,
  mentionedIn,
  missingAgents,
} from '../recipe/discovery/discover.ts'
export { loadDefinition, readDefinition } from '../recipe/discovery/load-definition.ts'
export type { DiscoveryOptions } from '../recipe/discovery/options.ts'
export {
  type ProjectFile,
  type ProjectFiles,
  type ProjectFilesOptions,
  projectFiles,
} from '../recipe/discovery/project-files.ts'
export {
  type DiscoveredSkills,
  discoverSkills,
  readSkillFile,
  type Skill,
  skillInstructions,
} from '../recipe/discovery/skills.ts'
export {
  BUILTIN_TOOLKITS,
  type BuiltinOptions,
  type BuiltinToolkit,
  builtinToolkit,
} from '../recipe/extension/builtin-toolkit.ts'
export {
  type ExtensionOptions,
  type ExtensionSources,
  extensionSources,
} from '../recipe/extension/extension-sources.ts'
export { skillsTools } from '../recipe/extension/skills-tools.ts'
export { type ChildSettings, MODES, type Mode, type Surface } from '../recipe/inline/spec.ts'
export { type OpenOptions, openSubagents, type SubRecipeOption } from '../recipe/open/open-subagents.ts'
export {
  describeRecipe,
  type LoadedRecipe,
  loadRecipe,
  type RecipeOptions,
  readRecipeFile,
} from '../recipe/recipe/load-recipe.ts'
export type { AskParameter } from '../recipe/recipe/parameters.ts'
export { type NeededSecret, secretsOf, subRecipeValues } from '../recipe/recipe/sub-recipes.ts'
export {
  readTaskEvent,
  type SubagentNotice,
  subagentLine,
  subagentNotice,
  TaskBoard,
  type TaskEvent,
  type TaskInfo,
} from '../recipe/task-events.ts'
export { type Notice, type NoticeCode, noticesOf, noticeText } from '../recipe/text/notice.ts'
export { type ModelUse, modelUse, type ValidationResult, validateDefinition } from '../recipe/validate-definition.ts'
export { type RecipeAgentOptions, recipeAgent } from '../runtime/recipe-agent.ts'
export { sourceName } from '../tool/source.ts'
