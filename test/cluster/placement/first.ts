// Operations of what there is once, or of no part: the node that has part 0 does them (table.ts).
export const OF_FIRST_NODE = `
  GET /
  GET /account
  GET /account/:tab
  GET /admin
  GET /admin/:tab
  GET /admin/:tab/:item
  GET PUT /api/v2/appearance
  GET /api/v2/applications/auth-redirect
  GET /api/v2/applications/host
  POST /api/v2/applications/reconnecting-pty-signed-token
  GET /api/v2/audit
  GET /api/v2/audit/export
  GET PUT /api/v2/audit/retention
  GET /api/v2/auth/scopes
  POST /api/v2/authcheck
  GET /api/v2/buildinfo
  GET /api/v2/chats
  GET /api/v2/chats/by-workspace
  GET PUT /api/v2/chats/config/auto-archive-days
  GET PUT /api/v2/chats/config/debug-logging
  GET PUT /api/v2/chats/config/debug-retention-days
  GET PUT /api/v2/chats/config/default-permissions
  GET PUT /api/v2/chats/config/personal-model-overrides
  GET PUT /api/v2/chats/config/plan-mode-instructions
  GET PUT /api/v2/chats/config/retention-days
  GET PUT /api/v2/chats/config/system-prompt
  GET /api/v2/chats/config/user-compaction-thresholds
  DELETE PUT /api/v2/chats/config/user-compaction-thresholds/:model
  GET PUT /api/v2/chats/config/user-debug-logging
  GET PUT /api/v2/chats/config/user-permissions
  GET PUT /api/v2/chats/config/user-prompt
  GET PUT /api/v2/chats/config/workspace-ttl
  GET /api/v2/chats/cost/:user/summary
  GET /api/v2/chats/cost/users
  POST /api/v2/chats/files
  GET /api/v2/chats/files/:file
  GET POST /api/v2/chats/model-configs
  DELETE PATCH /api/v2/chats/model-configs/:model_config
  POST /api/v2/chats/model-configs/:model_config/try
  GET /api/v2/chats/models
  GET POST /api/v2/chats/providers
  DELETE PATCH /api/v2/chats/providers/:provider
  GET /api/v2/chats/providers/local
  GET PUT /api/v2/chats/usage-limits
  DELETE PUT /api/v2/chats/usage-limits/group-overrides/:group
  DELETE PUT /api/v2/chats/usage-limits/overrides/:user
  GET /api/v2/chats/usage-limits/status
  GET /api/v2/connectionlog
  GET PUT /api/v2/connectionlog/retention
  GET /api/v2/debug/coordinator
  GET /api/v2/debug/health
  GET PUT /api/v2/debug/health/settings
  GET /api/v2/debug/tailnet
  GET POST /api/v2/deployment/backups
  POST /api/v2/deployment/backups/:backup/check
  GET /api/v2/deployment/backups/watch
  GET /api/v2/deployment/config
  GET /api/v2/deployment/external-auth
  GET /api/v2/deployment/logs
  GET /api/v2/deployment/logs/watch
  GET /api/v2/deployment/ssh
  GET /api/v2/deployment/stats
  GET /api/v2/deployment/support-bundle
  GET /api/v2/derp-map
  GET /api/v2/entitlements
  GET /api/v2/experiments
  GET /api/v2/experiments/available
  GET /api/v2/external-auth
  DELETE GET /api/v2/external-auth/:externalauth
  POST /api/v2/external-auth/:externalauth/callback
  GET POST /api/v2/external-auth/:externalauth/device
  POST /api/v2/external-auth/:externalauth/start
  POST /api/v2/files
  GET /api/v2/files/:file
  GET /api/v2/groups
  DELETE GET PATCH /api/v2/groups/:group
  GET /api/v2/groups/:group/members
  GET /api/v2/hooks/consumer
  POST /api/v2/hooks/consumer/try
  GET /api/v2/hooks/dispatches
  GET /api/v2/init-script/:os/:arch
  GET /api/v2/insights/builds
  GET /api/v2/insights/chats
  GET /api/v2/insights/daus
  GET /api/v2/insights/templates
  GET /api/v2/insights/user-activity
  GET /api/v2/insights/user-latency
  GET /api/v2/insights/user-status-counts
  GET /api/v2/licenses
  GET /api/v2/notifications/dispatch-methods
  GET /api/v2/notifications/inbox
  PUT /api/v2/notifications/inbox/:notification/read-status
  PUT /api/v2/notifications/inbox/mark-all-as-read
  GET PUT /api/v2/notifications/settings
  PUT /api/v2/notifications/templates/:notification_template/method
  GET /api/v2/notifications/templates/system
  POST /api/v2/notifications/test
  GET POST /api/v2/oauth2-provider/apps
  DELETE GET PUT /api/v2/oauth2-provider/apps/:oauth2_app
  GET POST /api/v2/oauth2-provider/apps/:oauth2_app/secrets
  DELETE /api/v2/oauth2-provider/apps/:oauth2_app/secrets/:oauth2_secret
  GET POST /api/v2/oauth2-provider/authorize
  GET POST /api/v2/organizations
  DELETE GET PATCH /api/v2/organizations/:organization
  GET /api/v2/organizations/:organization/chats/model-overrides
  PUT /api/v2/organizations/:organization/chats/model-overrides/:context
  GET POST /api/v2/organizations/:organization/groups
  GET /api/v2/organizations/:organization/groups/:groupName
  GET POST /api/v2/organizations/:organization/mcp-servers
  DELETE GET PATCH /api/v2/organizations/:organization/mcp-servers/:mcp_server
  DELETE /api/v2/organizations/:organization/mcp-servers/:mcp_server/oauth2
  GET /api/v2/organizations/:organization/mcp-servers/:mcp_server/oauth2/callback
  POST /api/v2/organizations/:organization/mcp-servers/:mcp_server/oauth2/start
  POST /api/v2/organizations/:organization/mcp-servers/:mcp_server/try
  GET /api/v2/organizations/:organization/members
  DELETE GET POST /api/v2/organizations/:organization/members/:user
  GET /api/v2/organizations/:organization/members/:user/chats/model-overrides
  PUT /api/v2/organizations/:organization/members/:user/chats/model-overrides/:context
  PUT /api/v2/organizations/:organization/members/:user/roles
  GET /api/v2/organizations/:organization/members/:user/workspace-quota
  GET /api/v2/organizations/:organization/members/:user/workspaces/available-users
  GET /api/v2/organizations/:organization/members/roles
  GET /api/v2/organizations/:organization/paginated-members
  GET /api/v2/organizations/:organization/provisionerdaemons
  GET /api/v2/organizations/:organization/provisionerdaemons/serve
  GET /api/v2/organizations/:organization/provisionerjobs
  GET POST /api/v2/organizations/:organization/provisionerkeys
  DELETE GET /api/v2/organizations/:organization/provisionerkeys/:key
  GET /api/v2/organizations/:organization/provisionerkeys/daemons
  GET PATCH /api/v2/organizations/:organization/settings/workspace-sharing
  GET POST /api/v2/organizations/:organization/templates
  GET /api/v2/organizations/:organization/templates/:name
  GET /api/v2/organizations/:organization/templates/:name/versions/:version
  GET /api/v2/organizations/:organization/templates/:name/versions/:version/previous
  POST /api/v2/organizations/:organization/templateversions
  GET PUT /api/v2/prebuilds/settings
  GET /api/v2/regions
  GET /api/v2/tailnet
  GET /api/v2/tasks
  GET /api/v2/templates
  DELETE GET PATCH /api/v2/templates/:template
  GET PATCH /api/v2/templates/:template/acl
  GET /api/v2/templates/:template/acl/available
  GET /api/v2/templates/:template/daus
  GET PATCH /api/v2/templates/:template/versions
  GET /api/v2/templates/:template/versions/:name
  POST /api/v2/templates/:template/versions/archive
  GET /api/v2/templates/examples
  GET /api/v2/templates/schema
  GET /api/v2/templateversions/:templateversion/presets
  GET /api/v2/templateversions/:templateversion/dry-run/:job/matched-provisioners
  GET /api/v2/updatecheck
  GET POST /api/v2/users
  DELETE GET /api/v2/users/:user
  GET PUT /api/v2/users/:user/appearance
  GET /api/v2/users/:user/autofill-parameters
  POST /api/v2/users/:user/confirm
  POST /api/v2/users/:user/confirm/passkey
  POST /api/v2/users/:user/confirm/passkey/start
  DELETE GET /api/v2/users/:user/factors
  POST /api/v2/users/:user/factors/recovery-codes
  PUT /api/v2/users/:user/factors/required
  DELETE POST /api/v2/users/:user/factors/totp
  POST /api/v2/users/:user/factors/totp/confirm
  GET PUT /api/v2/users/:user/gitsshkey
  POST /api/v2/users/:user/keys
  DELETE GET /api/v2/users/:user/keys/:key
  PUT /api/v2/users/:user/keys/:key/expire
  GET POST /api/v2/users/:user/keys/tokens
  GET PATCH /api/v2/users/:user/keys/tokens/:name
  GET /api/v2/users/:user/keys/tokens/tokenconfig
  GET PUT /api/v2/users/:user/notifications/preferences
  GET /api/v2/users/:user/oauth2-grants
  DELETE /api/v2/users/:user/oauth2-grants/:grant
  GET /api/v2/users/:user/organizations
  GET /api/v2/users/:user/organizations/:organization
  GET POST /api/v2/users/:user/passkeys
  DELETE PATCH /api/v2/users/:user/passkeys/:passkey
  POST /api/v2/users/:user/passkeys/start
  PUT /api/v2/users/:user/password
  GET PUT /api/v2/users/:user/preferences
  PUT /api/v2/users/:user/profile
  GET PUT /api/v2/users/:user/quiet-hours
  GET PUT /api/v2/users/:user/roles
  GET POST /api/v2/users/:user/secrets
  DELETE GET PATCH /api/v2/users/:user/secrets/:secret
  DELETE GET /api/v2/users/:user/sessions
  DELETE /api/v2/users/:user/sessions/:session
  GET POST /api/v2/users/:user/skills
  DELETE GET PATCH /api/v2/users/:user/skills/:skill
  PUT /api/v2/users/:user/status/:status
  DELETE POST /api/v2/users/:user/webpush/subscription
  POST /api/v2/users/:user/webpush/test
  GET /api/v2/users/authmethods
  GET POST /api/v2/users/first
  POST /api/v2/users/login
  POST /api/v2/users/login/passkey
  POST /api/v2/users/login/passkey/start
  POST /api/v2/users/login/second-factor
  POST /api/v2/users/logout
  GET /api/v2/users/oidc/:provider/callback
  GET /api/v2/users/oidc/:provider/start
  GET /api/v2/users/oidc/callback
  GET /api/v2/users/roles
  POST /api/v2/users/validate-password
  POST /api/v2/workspaceagents/aws-instance-identity
  POST /api/v2/workspaceagents/azure-instance-identity
  POST /api/v2/workspaceagents/cloud-a-instance-identity
  POST /api/v2/workspaceagents/cloud-b-instance-identity
  POST /api/v2/workspaceagents/cloud-c-instance-identity
  GET /api/v2/workspaceagents/connection
  POST /api/v2/workspaceagents/google-instance-identity
  GET /api/v2/workspaces
  GET /assets/:file
  GET /audit
  GET /bin/:file
  GET /chats
  GET /cli-auth
  GET /connections
  GET /derp
  GET /derp/latency-check
  GET /docs
  GET /docs/:page
  GET /external-auth/:provider
  GET /external-auth/:provider/callback
  GET /init-script/:os/:arch
  GET /insights
  GET /insights/:tab
  GET /login
  GET /manifest.webmanifest
  GET /new
  GET /oauth2/authorize
  GET /offline
  GET /settings/external-auth
  GET /settings/security
  GET /settings/tokens
  GET /setup
  GET /sw.js
  GET /swagger
  GET /swagger/json
  GET /swagger/page.css
  GET /swagger/page.js
  GET /swagger/ui.css
  GET /swagger/ui.js
  GET /tasks
  GET /templates
  GET /templates/:template
  GET /templates/:template/:tab
  GET /terminals
  GET /workspaces
`;
