// No validator badge: it would send the address of this page to another host.
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  validatorUrl: null,
  displayRequestDuration: true,
  persistAuthorization: false,
});
